package schemafile

// Level is the importance of a difference.
type Level int

// The levels.
const (
	// Fine differences do not affect messages.
	Fine Level = iota
	// Note differences are features that the runtime does not use. Its messages stay valid and it
	// accepts all valid messages.
	Note
	// Failure differences make the runtime wrong, so nothing is generated.
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

// consequence describes what follows from a kind of difference.
type consequence struct {
	level Level
	// what describes the difference. It may contain {place}, {was} and {is}.
	what string
	// cause says what the difference means for code generated for the nearest revision.
	cause string
	// files lists the files of mcptaskgen to change, except those that every revision needs.
	files []string
}

// Files of mcptaskgen for its maintainers. REVISION stands for the new revision.
const (
	protocolFile   = "runtime/internal/protocol/revREVISION.go"
	registryFile   = "runtime/internal/protocol/protocol.go"
	lifecycleFile  = "runtime/server_lifecycle.go"
	recordFile     = "runtime/record.go"
	operationsFile = "runtime/server_operations.go"
	routeFile      = "runtime/gateway/route.go"
	messageFile    = "runtime/gateway/message.go"
	errorsFile     = "runtime/errors.go"
	checkFile      = "schema/wirecheck/definitions.go"
	surfaceFile    = "schema/REVISION/surface.json"
	canonFile      = "schema/canon.json"
)

// everyRevision lists the files that every new revision needs, with their content.
var everyRevision = [][2]string{
	{"schema/REVISION/tasks.schema.json", "its definitions"},
	{surfaceFile, "its states, methods, notifications, error codes and capabilities"},
	{"schema/REVISION/provenance.json", "the sources of these facts"},
	{"schema/REVISION/rules.txt", "its rules"},
	{"runtime/internal/protocol/wireREVISION/", "its wire types, by make generate"},
	{protocolFile, "how it represents a task on the wire"},
	{registryFile, "the list of revisions"},
	{"runtime/gateway/speech.go", "how a request is matched to its revision"},
	{"runtime/gosdk/conn.go", "which revision a client speaks"},
}

// filePurposes describes the content of the other files.
var filePurposes = map[string]string{
	canonFile:      "the canonical name of the new thing, if it has none",
	lifecycleFile:  "which state follows which",
	recordFile:     "the stored parts of a task",
	operationsFile: "what the methods do",
	routeFile:      "which requests are about tasks",
	messageFile:    "which notifications are about tasks",
	errorsFile:     "the codes of errors",
	checkFile:      "which definition tests check a message against",
}

// consequences describes every kind of difference.
var consequences = map[Kind]consequence{
	MemberNew: {Note, "{place} is new and optional: {is}",
		"the runtime does not send it and ignores it from a peer", nil},
	MemberNewRequired: {Failure, "{place} is new and required: {is}",
		"the runtime does not send it, so its messages are invalid", nil},
	MemberGone: {Failure, "{place} is gone; it was {was}",
		"the runtime still sends or needs it", nil},
	MemberRenamed: {Failure, "{place} seems to be renamed to {is}: one is gone, the other is new with the same content",
		"the runtime only knows the old name", nil},
	MemberRequired: {Failure, "{place} is required now; it was optional",
		"the runtime may omit it", nil},
	MemberOptional: {Failure, "{place} is optional now; it was required",
		"a peer may omit it, but the runtime expects it", nil},
	TypeChanged: {Failure, "{place} is {is} now; it was {was}",
		"the runtime sends and reads the old type", nil},
	NullNew: {Failure, "{place} may be null now; it was {was}",
		"a peer may send null, which the runtime does not expect", nil},
	NullGone: {Failure, "{place} may not be null any more; it is {is}",
		"the runtime sends null when it has no value", []string{recordFile}},
	StateNew: {Failure, "the state {is} is new ({place})",
		"the runtime does not know what a task in this state may do and when it leaves the state", []string{canonFile, lifecycleFile, recordFile}},
	StateGone: {Failure, "the state {was} is gone ({place})",
		"the runtime still puts tasks into it", []string{lifecycleFile}},
	StateRenamed: {Failure, "the state {was} seems to be renamed to {is} ({place}): one is gone and one is new",
		"the runtime only knows the old name", nil},
	ValueNew: {Failure, "{place} may be {is} now, a new value",
		"the runtime does not know what it means", nil},
	ValueGone: {Failure, "{place} may not be {was} any more",
		"the runtime may still send it", nil},
	ValueRenamed: {Failure, "the value {was} of {place} seems to be renamed to {is}: one is gone and one is new",
		"the runtime only knows the old value", nil},
	ConstChanged: {Failure, "{place} is always {is} now; it was {was}",
		"the runtime sends and expects the old value", nil},
	MethodNew: {Failure, "the method {is} is new ({place})",
		"the runtime neither serves nor calls it", []string{canonFile, operationsFile, routeFile, checkFile}},
	MethodGone: {Failure, "the method {was} is gone ({place})",
		"the runtime still serves or calls it", []string{checkFile}},
	MethodRenamed: {Failure, "the method {was} seems to be renamed to {is} ({place}): the rest of the request is the same",
		"the runtime serves and calls it by the old name", []string{routeFile, checkFile}},
	NotificationNew: {Note, "the notification {is} is new ({place})",
		"the runtime does not send it and ignores it from a peer", []string{canonFile, messageFile, checkFile}},
	NotificationGone: {Failure, "the notification {was} is gone ({place})",
		"the runtime still sends it", []string{messageFile, checkFile}},
	NotificationRenamed: {Failure, "the notification {was} seems to be renamed to {is} ({place}): the rest of it is the same",
		"the runtime sends and expects it by the old name", []string{messageFile, checkFile}},
	ErrorNew: {Note, "the error {place} is new, with the code {is}",
		"the runtime does not send it; a client receives it like any other *mcptask.Error", []string{errorsFile}},
	ErrorMoved: {Failure, "the error code of {place} is {is} now; it was {was}",
		"the runtime sends and expects the old code", []string{errorsFile}},
	CapabilityNew: {Note, "the capability {place} is new",
		"generated servers and clients do not declare it, so peers do not use it", nil},
	CapabilityGone: {Failure, "the capability {place} is gone",
		"generated code still declares it", nil},
	DefinitionNew: {Note, "the definition {place} is new: {is}",
		"the runtime ignores it; if a known definition refers to it, the report lists that too", nil},
	DefinitionGone: {Failure, "the definition {place} is gone",
		"the runtime still sends or reads what it described", nil},
	DefinitionInlined: {Fine, "the definition {place} is gone",
		"others referred to it; its content is compared inside them", nil},
	DefinitionRenamed: {Fine, "the definition {place} seems to be renamed to {is}: the content is the same",
		"names of definitions are not sent", nil},
	VariantNew: {Failure, "{place} has a new variant: {is}",
		"the runtime cannot read it", nil},
	VariantGone: {Failure, "{place} has lost a variant: {was}",
		"the runtime may still send it", nil},
	ObjectClosed: {Failure, "{place} no longer accepts additional members",
		"the runtime or the code it serves may send additional members", nil},
	ObjectOpened: {Note, "{place} accepts additional members now",
		"the runtime sends none and ignores them", nil},
	RuleChanged: {Failure, "{place}: {is}; before: {was}",
		"the runtime may send invalid values or refuse valid ones", nil},
}
