package description

// The words that decide how a sentence goes on without its subject.
var (
	// reporting are verbs before a clause that means the same without them: "says whether", "controls how".
	reporting = []string{"controls", "decides", "defines", "describes", "determines", "indicates", "means", "reports", "says", "selects", "sets", "shows", "specifies", "states", "tells"}
	// questions begin such a clause.
	questions = []string{"how", "what", "when", "where", "whether", "which", "who", "whom", "whose", "why"}
	// holding are verbs that say no more than "is".
	holding = []string{"contains", "defines", "denotes", "gives", "has", "holds", "represents", "specifies", "states", "stores"}
	// complete are verbs that need no subject to be understood: "Must be positive", "Defaults to 10".
	complete = []string{"can", "defaults", "may", "must", "should", "will"}
	adverbs  = []string{"also", "always", "just", "never", "only", "then"}
	// determiners follow a verb. They do not follow a noun.
	determiners = []string{"a", "all", "an", "another", "any", "both", "each", "every", "everything", "exactly", "how", "it", "its", "no", "nothing",
		"one", "some", "the", "their", "them", "these", "this", "those", "what", "whether", "whom"}
	// clear are words that no English noun is like.
	clear = []string{"accepts", "adds", "applies", "computes", "converts", "creates", "deletes", "describes", "determines", "disables", "does", "doesn't", "enables", "excludes",
		"fetches", "finds", "generates", "gets", "ignores", "includes", "indicates", "inserts", "is", "isn't", "keeps", "lets", "makes", "overrides", "overwrites", "parses",
		"performs", "prevents", "provides", "removes", "renders", "replaces", "retrieves", "returns", "says", "sends", "specifies", "takes", "tells",
		"validates", "was", "were", "writes"}
	// notVerbs end with an s and are no verbs.
	notVerbs = []string{"across", "always", "as", "besides", "its", "minus", "perhaps", "plus", "this", "thus", "towards", "unless", "versus"}
)
