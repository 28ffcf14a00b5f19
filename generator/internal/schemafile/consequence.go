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

// Kind is a kind of difference between a schema and a known revision, with what follows from it.
type Kind struct {
	level Level
	// what describes the difference. It may contain {place}, {was} and {is}.
	what string
	// cause says what the difference means for code generated for the nearest revision.
	cause string
}

// Kinds lists all kinds.
var Kinds []*Kind

func newKind(level Level, what, cause string) *Kind {
	k := &Kind{level, what, cause}
	Kinds = append(Kinds, k)
	return k
}

// The kinds.
var (
	MemberNew = newKind(Note, "{place} is new and optional: {is}",
		"the runtime does not send it and ignores it from a peer")
	MemberNewRequired = newKind(Failure, "{place} is new and required: {is}",
		"the runtime does not send it, so its messages are invalid")
	MemberGone = newKind(Failure, "{place} is gone; it was {was}",
		"the runtime still sends or needs it")
	MemberRenamed = newKind(Failure, "{place} seems to be renamed to {is}: one is gone, the other is new with the same content",
		"the runtime only knows the old name")
	MemberRequired = newKind(Failure, "{place} is required now; it was optional",
		"the runtime may omit it")
	MemberOptional = newKind(Failure, "{place} is optional now; it was required",
		"a peer may omit it, but the runtime expects it")
	TypeChanged = newKind(Failure, "{place} is {is} now; it was {was}",
		"the runtime sends and reads the old type")
	NullNew = newKind(Failure, "{place} may be null now; it was {was}",
		"a peer may send null, which the runtime does not expect")
	NullGone = newKind(Failure, "{place} may not be null any more; it is {is}",
		"the runtime sends null when it has no value")
	StateNew = newKind(Failure, "the state {is} is new ({place})",
		"the runtime does not know what a task in this state may do and when it leaves the state")
	StateGone = newKind(Failure, "the state {was} is gone ({place})",
		"the runtime still puts tasks into it")
	StateRenamed = newKind(Failure, "the state {was} seems to be renamed to {is} ({place}): one is gone and one is new",
		"the runtime only knows the old name")
	ValueNew = newKind(Failure, "{place} may be {is} now, a new value",
		"the runtime does not know what it means")
	ValueGone = newKind(Failure, "{place} may not be {was} any more",
		"the runtime may still send it")
	ValueRenamed = newKind(Failure, "the value {was} of {place} seems to be renamed to {is}: one is gone and one is new",
		"the runtime only knows the old value")
	ConstChanged = newKind(Failure, "{place} is always {is} now; it was {was}",
		"the runtime sends and expects the old value")
	MethodNew = newKind(Failure, "the method {is} is new ({place})",
		"the runtime neither serves nor calls it")
	MethodGone = newKind(Failure, "the method {was} is gone ({place})",
		"the runtime still serves or calls it")
	MethodRenamed = newKind(Failure, "the method {was} seems to be renamed to {is} ({place}): the rest of the request is the same",
		"the runtime serves and calls it by the old name")
	NotificationNew = newKind(Note, "the notification {is} is new ({place})",
		"the runtime does not send it and ignores it from a peer")
	NotificationGone = newKind(Failure, "the notification {was} is gone ({place})",
		"the runtime still sends it")
	NotificationRenamed = newKind(Failure, "the notification {was} seems to be renamed to {is} ({place}): the rest of it is the same",
		"the runtime sends and expects it by the old name")
	ErrorNew = newKind(Note, "the error {place} is new, with the code {is}",
		"the runtime does not send it; a client receives it like any other *mcptask.Error")
	ErrorMoved = newKind(Failure, "the error code of {place} is {is} now; it was {was}",
		"the runtime sends and expects the old code")
	CapabilityNew = newKind(Note, "the capability {place} is new",
		"generated servers and clients do not declare it, so peers do not use it")
	CapabilityGone = newKind(Failure, "the capability {place} is gone",
		"generated code still declares it")
	DefinitionNew = newKind(Note, "the definition {place} is new: {is}",
		"the runtime ignores it; if a known definition refers to it, the report lists that too")
	DefinitionGone = newKind(Failure, "the definition {place} is gone",
		"the runtime still sends or reads what it described")
	DefinitionInlined = newKind(Fine, "the definition {place} is gone",
		"others referred to it; its content is compared inside them")
	DefinitionRenamed = newKind(Fine, "the definition {place} seems to be renamed to {is}: the content is the same",
		"names of definitions are not sent")
	VariantNew = newKind(Failure, "{place} has a new variant: {is}",
		"the runtime cannot read it")
	VariantGone = newKind(Failure, "{place} has lost a variant: {was}",
		"the runtime may still send it")
	ObjectClosed = newKind(Failure, "{place} no longer accepts additional members",
		"the runtime or the code it serves may send additional members")
	ObjectOpened = newKind(Note, "{place} accepts additional members now",
		"the runtime sends none and ignores them")
	RuleChanged = newKind(Failure, "{place}: {is}; before: {was}",
		"the runtime may send invalid values or refuse valid ones")
)
