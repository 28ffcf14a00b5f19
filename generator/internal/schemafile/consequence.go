package schemafile

// Level says how much a difference matters.
type Level int

// The levels.
const (
	// Fine changes nothing that goes over the wire.
	Fine Level = iota
	// Note is what the runtime does without: all that it sends stays valid, and it takes all that is.
	Note
	// Failure is what the runtime does wrong, so that nothing is generated.
	Failure
)

func (l Level) String() string { return [...]string{"fine", "note", "error"}[l] }

// Kind is a kind of difference between a schema and a known revision.
type Kind int

// The kinds.
const (
	MemberNew Kind = iota
	MemberNewRequired
	MemberGone
	MemberRenamed
	MemberRequired
	MemberOptional
	TypeChanged
	NullNew
	NullGone
	StateNew
	StateGone
	StateRenamed
	ValueNew
	ValueGone
	ValueRenamed
	ConstChanged
	MethodNew
	MethodGone
	MethodRenamed
	NotificationNew
	NotificationGone
	NotificationRenamed
	ErrorNew
	ErrorMoved
	CapabilityNew
	CapabilityGone
	DefinitionNew
	DefinitionGone
	DefinitionInlined
	DefinitionRenamed
	VariantNew
	VariantGone
	ObjectClosed
	ObjectOpened
	RuleChanged
)

// consequence is what comes of a difference.
type consequence struct {
	level Level
	// what says the difference, with {place}, {was} and {is}.
	what string
	// cause says what it means for code that is generated for the nearest revision.
	cause string
	// files are those of mcptaskgen that have to learn it, beside those that every revision has.
	files []string
}

// The files of mcptaskgen, as its maintainers know them; REVISION is the new one.
const (
	dialectFile    = "runtime/internal/dialect/revREVISION.go"
	registryFile   = "runtime/internal/dialect/dialect.go"
	lifecycleFile  = "runtime/server_lifecycle.go"
	recordFile     = "runtime/record.go"
	operationsFile = "runtime/server_operations.go"
	serverFile     = "runtime/gateway/post.go"
	pipeFile       = "runtime/gateway/pipe_requests.go"
	messageFile    = "runtime/gateway/message.go"
	errorsFile     = "runtime/errors.go"
	checkFile      = "schema/wirecheck/definitions.go"
	surfaceFile    = "schema/REVISION/surface.json"
	canonFile      = "schema/canon.json"
)

// everyRevision are the files that any new revision has, with what goes into them.
var everyRevision = [][2]string{
	{"schema/REVISION/tasks.schema.json", "its definitions"},
	{surfaceFile, "its states, methods, notifications, error codes and capabilities"},
	{"schema/REVISION/provenance.json", "where they come from"},
	{"schema/REVISION/rules.txt", "its rules"},
	{"runtime/internal/dialect/wireREVISION/", "its wire types, by make generate"},
	{dialectFile, "how a task goes over the wire in it"},
	{registryFile, "the list of revisions"},
	{"runtime/gateway/speech.go", "where a request finds its revision"},
	{"runtime/gosdk/conn.go", "which revision a client speaks"},
}

// purpose is what the other files have.
var purpose = map[string]string{
	canonFile:      "the canonical name of what is new, where it has none",
	lifecycleFile:  "which state follows which",
	recordFile:     "what is stored of a task",
	operationsFile: "what the methods do",
	serverFile:     "which requests over HTTP are those of tasks",
	pipeFile:       "which requests on pipes are those of tasks",
	messageFile:    "which notifications are those of tasks",
	errorsFile:     "the codes of errors",
	checkFile:      "which definition a message is held against in tests",
}

// table is what comes of each kind of difference.
var table = map[Kind]consequence{
	MemberNew: {Note, "{place} is new and optional: {is}",
		"the runtime does not send it, and passes over it where a peer does", nil},
	MemberNewRequired: {Failure, "{place} is new and required: {is}",
		"the runtime does not send it, so that its messages are not valid", nil},
	MemberGone: {Failure, "{place} is gone; it was {was}",
		"the runtime still sends it or needs it", nil},
	MemberRenamed: {Failure, "{place} is renamed to {is}, it seems: one is gone, the other new and the same",
		"the runtime knows the old name alone", nil},
	MemberRequired: {Failure, "{place} is required now; it was optional",
		"the runtime may leave it out", nil},
	MemberOptional: {Failure, "{place} is optional now; it was required",
		"a peer may leave it out, and the runtime expects it", nil},
	TypeChanged: {Failure, "{place} is {is} now; it was {was}",
		"the runtime sends and reads the old type", nil},
	NullNew: {Failure, "{place} may be null now; it was {was}",
		"a peer may send null, which the runtime does not expect", nil},
	NullGone: {Failure, "{place} may not be null any more; it is {is}",
		"the runtime sends null where there is nothing to say", []string{recordFile}},
	StateNew: {Failure, "the state {is} is new ({place})",
		"the runtime does not know what a task in this state may do, and when to leave it", []string{canonFile, lifecycleFile, recordFile}},
	StateGone: {Failure, "the state {was} is gone ({place})",
		"the runtime still puts tasks into it", []string{lifecycleFile}},
	StateRenamed: {Failure, "the state {was} is renamed to {is}, it seems ({place}): one is gone and one new",
		"the runtime knows the old name alone", nil},
	ValueNew: {Failure, "{place} may be {is} now, a new value",
		"the runtime does not know what it means", nil},
	ValueGone: {Failure, "{place} may not be {was} any more",
		"the runtime may still send it", nil},
	ValueRenamed: {Failure, "the value {was} of {place} is renamed to {is}, it seems: one is gone and one new",
		"the runtime knows the old value alone", nil},
	ConstChanged: {Failure, "{place} is always {is} now; it was {was}",
		"the runtime sends and expects the old value", nil},
	MethodNew: {Failure, "the method {is} is new ({place})",
		"the runtime neither serves nor calls it", []string{canonFile, operationsFile, serverFile, pipeFile, checkFile}},
	MethodGone: {Failure, "the method {was} is gone ({place})",
		"the runtime still serves or calls it", []string{checkFile}},
	MethodRenamed: {Failure, "the method {was} is renamed to {is}, it seems ({place}): the rest of the request is the same",
		"the runtime serves and calls it by the old name", []string{serverFile, pipeFile, checkFile}},
	NotificationNew: {Note, "the notification {is} is new ({place})",
		"the runtime does not send it, and passes over it where a peer does", []string{canonFile, messageFile, checkFile}},
	NotificationGone: {Failure, "the notification {was} is gone ({place})",
		"the runtime still sends it", []string{messageFile, checkFile}},
	NotificationRenamed: {Failure, "the notification {was} is renamed to {is}, it seems ({place}): the rest of it is the same",
		"the runtime sends and expects it by the old name", []string{messageFile, checkFile}},
	ErrorNew: {Note, "the error {place} is new, with the code {is}",
		"the runtime does not send it; a client gets it as any other *mcptask.Error", []string{errorsFile}},
	ErrorMoved: {Failure, "the error code of {place} is {is} now; it was {was}",
		"the runtime sends and expects the old code", []string{errorsFile}},
	CapabilityNew: {Note, "the capability {place} is new",
		"generated servers and clients do not declare it, so that no peer uses it", nil},
	CapabilityGone: {Failure, "the capability {place} is gone",
		"generated code still declares it", nil},
	DefinitionNew: {Note, "the definition {place} is new: {is}",
		"it means nothing to the runtime; where something known refers to it, that stands here too", nil},
	DefinitionGone: {Failure, "the definition {place} is gone",
		"the runtime still sends or reads what it described", nil},
	DefinitionInlined: {Fine, "the definition {place} is gone",
		"others referred to it; what it described is compared where they have it", nil},
	DefinitionRenamed: {Fine, "the definition {place} is renamed to {is}, it seems: the content is the same",
		"the names of definitions do not go over the wire", nil},
	VariantNew: {Failure, "{place} has a new variant: {is}",
		"the runtime cannot read it", nil},
	VariantGone: {Failure, "{place} has lost a variant: {was}",
		"the runtime may still send it", nil},
	ObjectClosed: {Failure, "{place} takes no members beside its own any more",
		"the runtime may send others, and so may the code that it serves", nil},
	ObjectOpened: {Note, "{place} takes members beside its own now",
		"the runtime sends none, and passes over them", nil},
	RuleChanged: {Failure, "{place}: {is}; before: {was}",
		"what the runtime sends may not be valid, or it may refuse what is", nil},
}
