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
	// adverbs may stand before the verb.
	adverbs = []string{"also", "always", "just", "never", "only", "then"}
	// determiners follow a verb. They do not follow a noun.
	determiners = []string{"a", "all", "an", "another", "any", "both", "each", "every", "everything", "exactly", "how", "it", "its", "no", "nothing",
		"one", "some", "the", "their", "them", "these", "this", "those", "what", "whether", "whom"}
	// certain are verbs that cannot be plurals of nouns.
	certain = []string{
		"accepts", "adds", "allows", "appends", "applies", "asks", "becomes", "begins", "brings", "chooses", "comes",
		"computes", "connects", "contains", "converts", "creates", "decides", "deletes", "describes", "determines",
		"disables", "discards", "does", "doesn't", "embeds", "enables", "ends", "excludes", "executes", "explains",
		"extracts", "fails", "fetches", "finds", "finishes", "follows", "gathers", "generates", "gets", "gives",
		"goes", "greets", "happens", "has", "hides", "holds", "identifies", "ignores", "includes", "indicates", "inserts",
		"is", "isn't", "keeps", "launches", "lets", "makes", "means", "obtains", "opens",
		"overrides", "overwrites", "parses", "performs", "prevents", "provides", "publishes", "puts",
		"quits", "receives", "refuses", "removes", "renames", "renders", "replaces", "requires", "resolves",
		"retrieves", "returns", "says", "selects", "sends", "skips", "specifies", "submits", "takes", "tells",
		"transforms", "tries", "turns", "understands", "validates", "verifies", "waits", "wants", "was", "were",
		"withdraws", "works", "writes",
	}
	// prepositions follow a plural rather than a verb, as in "List lists of a board".
	prepositions = []string{"by", "from", "in", "of", "on"}
	// notVerbs end with an s and are not verbs.
	notVerbs = []string{"across", "always", "as", "besides", "its", "minus", "perhaps", "plus", "this", "thus", "towards", "unless", "versus"}
)
