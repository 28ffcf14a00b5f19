package gateway

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// smallMessage is the length up to which a message takes no memory here, because its connection
	// has room for it. So small messages go on during any flood.
	smallMessage = 8 << 10
	// memoryShare is how much of each kind of memory an account may take, as a multiple of the
	// largest message. All anonymous callers together may take as much, those of one address three
	// quarters of it, and the server twice as much.
	memoryShare = 8
	// bodyCopies is how many copies of a body there are until it is handled: as it came, as it was
	// edited, and the SDK's values.
	bodyCopies = 4
	// valueCost is how many bytes the smallest value of a body takes once the SDK has decoded it.
	valueCost = 128
	// resultCopies is how many copies of a result there are until its client has received it.
	// answerCopies is how many there are of any other answer.
	resultCopies = 6
	answerCopies = 3
	// memoryPatience is how long a message waits for memory.
	memoryPatience = 10 * time.Second
	// startShare divides Options.Concurrency. The quotient is how many calls without a task may begin
	// at once for an account, or for all anonymous callers, but at least fewestStarts: few slots for
	// tasks are no reason to let calls wait. The server begins startShare times as many.
	startShare   = 8
	fewestStarts = 8
	// startTime is how long a call counts as one that begins, if its handler does not return before. From the
	// handler's end until its result is encoded it counts again.
	startTime = time.Second / 10
	// startPatience is how long such a call waits until it may begin, and until its result may be encoded.
	startPatience = 30 * time.Second
)

// memoryKind is the purpose of taken memory. Each kind has bounds of its own: a message that holds one
// kind and waits for the next does not wait for messages that do the same.
type memoryKind int

const (
	ofBodies memoryKind = iota
	ofValues
	ofAnswers
	ofCalls // counts calls
	memoryKinds
)

// memoryKey names a count of memory: that of a principal, or of a scope.
type memoryKey struct {
	kind  memoryKind
	whose string
}

// memory bounds the memory of messages under way. A message takes memory from its first bytes until it
// is handled, and an answer from its creation until the client has received it. All gateways of a server
// share it.
type memory struct {
	limit.Budget[memoryKey]
	calls limit.Budget[memoryKey]
}

type memoryOf struct{}

func memoryFor(s *taskserver.Backend) *memory {
	return s.Attached(memoryOf{}, func() any { return &memory{calls: limit.Budget[memoryKey]{NewestFirst: true}} }).(*memory)
}

// memoryBound returns how much of each kind of memory an account may take.
func (g *Gateway) memoryBound() int {
	largest := int(min(g.maxBody, math.MaxInt))
	if result := g.server.Options().Limits.Result; result < math.MaxInt {
		largest = max(largest, result)
	}
	return limit.Times(largest, memoryShare)
}

// measureMessage returns how much memory a message takes: its copies, and its values as the SDK decodes
// them. A small message takes none.
func measureMessage(data []byte) int {
	if len(data) <= smallMessage {
		return 0
	}
	return len(data)*bodyCopies + wire.CountValues(data, len(data))*valueCost
}

// share is the memory that one request takes. It is safe for concurrent use. A nil share and the zero
// value take nothing, and so does a share after release.
type share struct {
	g      *Gateway
	caller taskserver.Caller
	remote *http.Request // has the address of an anonymous caller; nil on a pipe

	mu    sync.Mutex
	taken [memoryKinds]int
	gives []func()
	over  bool
}

// bounds returns the bounds of a kind, with their scopes: those of the account, or of the address and of all
// anonymous callers, and those of the server.
func (s *share) bounds(kind memoryKind) (scopes []taskstore.Scope, bounds []limit.Bound[memoryKey]) {
	most := s.g.memoryBound()
	ofServer := limit.Times(most, 2)
	if kind == ofCalls {
		most = max(fewestStarts, s.g.server.Options().Concurrency/startShare)
		ofServer = limit.Times(most, startShare)
	}
	bound := func(scope taskstore.Scope, whose string, most int) {
		scopes, bounds = append(scopes, scope), append(bounds, limit.Bound[memoryKey]{Key: memoryKey{kind, whose}, Most: most})
	}
	if s.caller.Principal != "" {
		bound(taskstore.ScopeAccount, "principal "+s.caller.Principal, most)
	} else {
		if s.remote != nil {
			if address := s.g.locate(s.remote, s.caller).Address; address != "" {
				bound(taskstore.ScopeAddress, "address "+address, limit.ShareOfAddress(most))
			}
		}
		bound(taskstore.ScopeAnonymous, string(taskstore.ScopeAnonymous), most)
	}
	bound(taskstore.ScopeServer, string(taskstore.ScopeServer), ofServer)
	return scopes, bounds
}

// take takes memory until release. It waits for a bounded time if there is too little. kept is how many
// bytes the request keeps in memory meanwhile that do not count yet.
func (s *share) take(ctx context.Context, kind memoryKind, n, kept int) *mcptask.Error {
	give, refusal := s.borrow(ctx, kind, n, kept)
	if refusal != nil || s == nil {
		return refusal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		give()
		return nil
	}
	s.taken[kind] += n
	s.gives = append(s.gives, give)
	return nil
}

// borrow takes memory as take does, but until give is called.
func (s *share) borrow(ctx context.Context, kind memoryKind, n, kept int) (give func(), refusal *mcptask.Error) {
	if n <= 0 || s == nil || s.g == nil {
		return func() {}, nil
	}
	budget, name, patience := &s.g.memory.Budget, "memory", memoryPatience
	if kind == ofCalls {
		budget, name, patience = &s.g.memory.calls, "starting", startPatience
	}
	scopes, bounds := s.bounds(kind)
	for _, bound := range bounds { // a message larger than its own bound must not fill the wider ones
		n = min(n, bound.Most)
	}
	give, full := budget.Take(ctx, patience, n, kept, bounds...)
	if give == nil {
		return nil, s.g.server.LimitedIn(ctx, scopes[full], s.caller, name, bounds[full].Most)
	}
	return give, nil
}

// beginCall waits until a call without a task may begin. The size of a result is known only once the
// handler has returned and the result is encoded, so only a few calls do this at once. A handler that
// takes longer than startTime makes way for others, and so its call has to wait again until its result may
// be encoded. Call returned when the handler has returned, and end when the result is encoded.
func (s *share) beginCall(ctx context.Context) (returned func() error, end func(), refusal *mcptask.Error) {
	give, refusal := s.borrow(ctx, ofCalls, 1, 0)
	if refusal != nil {
		return nil, nil, refusal
	}
	give = sync.OnceFunc(give)
	timer := time.AfterFunc(startTime, guard.Func(nil, "the beginning of a call", give))
	encoded, done := context.WithCancel(context.Background())
	returned = func() error {
		if timer.Stop() {
			return nil
		}
		again, refusal := s.borrow(ctx, ofCalls, 1, 0)
		if refusal != nil {
			return refusal
		}
		context.AfterFunc(encoded, guard.Func(nil, "the end of a call", again))
		return nil
	}
	return returned, func() { timer.Stop(); give(); done() }, nil
}

// has returns how much of a kind this request has taken.
func (s *share) has(kind memoryKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[kind]
}

// release gives back all that was taken.
func (s *share) release() {
	s.mu.Lock()
	gives := s.gives
	s.gives, s.over = nil, true
	s.mu.Unlock()
	for _, give := range gives {
		give()
	}
}

// takeResult takes memory for a result that is about to be encoded, beyond the memory that the request has.
func (s *share) takeResult(ctx context.Context, size int) *mcptask.Error {
	if s == nil || size <= smallMessage {
		return nil
	}
	return s.take(ctx, ofAnswers, size*resultCopies-s.has(ofAnswers), size)
}

// withRoom returns a context in which methods take memory before they encode a stored result.
func (s *share) withRoom(ctx context.Context) context.Context {
	return protocol.WithRoom(ctx, func(ctx context.Context, size int) error {
		if refusal := s.takeResult(ctx, size); refusal != nil {
			return refusal
		}
		return nil
	})
}

// beginReading watches how fast a client sends a body. A read fails once the client has lost its room to
// others.
func (s *share) beginReading(w http.ResponseWriter) *limit.Transfer[memoryKey] {
	control := http.NewResponseController(w)
	_, bounds := s.bounds(ofBodies)
	return s.g.memory.Begin(func() { _ = control.SetReadDeadline(time.Unix(1, 0)) }, bounds...) // some transports have no deadlines
}

// beginWriting watches how fast a client receives an answer. A write fails once the client has lost
// its room to others.
func (s *share) beginWriting(control *http.ResponseController) *limit.Transfer[memoryKey] {
	_, bounds := s.bounds(ofAnswers)
	return s.g.memory.Begin(func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }, bounds...)
}
