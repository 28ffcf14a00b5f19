package mcptask

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
)

// StepHost is a [Host] that stores steps. [Step], [Save], [Load] and [Sleep] call it. Its methods are called
// concurrently.
type StepHost interface {
	Host
	// RunStep returns the stored value of a step. If there is none, it calls f and stores the value that f returns.
	RunStep(ctx context.Context, key string, f func(context.Context) (json.RawMessage, error)) (json.RawMessage, error)
	// Save stores a position within 100 ms.
	Save(ctx context.Context, name string, value json.RawMessage) error
	// Load returns a position. It returns false if there is none.
	Load(ctx context.Context, name string) (json.RawMessage, bool, error)
	// Sleep waits until d after it was first called with the key.
	Sleep(ctx context.Context, key string, d time.Duration) error
}

// Step runs f once in the life of a task: it stores the result under name before it returns, and a later run of the
// handler gets the result without f. It calls f again if the process died before the result was stored. Give the world
// outside an idempotency key then, such as [StepKey].
//
// The name is that of the step within the task, such as "upload". If a run uses a name again, or uses the name of a
// question, the later step is name#2, so each run must use its names in the same order. Step refuses a name that the
// run has given to [Save] or [Load]. The result is stored as JSON, and Step returns what JSON keeps of it. An error of f is returned and not stored: the handler may call Step again with
// the name. If it goes on without the step instead, as a loop over many parts may, each step needs a name of its own.
//
// In a plain call Step stores nothing. Errors: those of f, an *[Error] if the value or the task is beyond a limit, an
// error with the name and the type if the stored value does not fit T, and the cause of the end of ctx, such as
// [ErrSuperseded] if another run has the task.
func Step[T any](ctx context.Context, task *Task, name string, f func(context.Context) (T, error)) (T, error) {
	var none T
	key, giveBack, err := task.takeStepKey(name)
	if err != nil {
		return none, err
	}
	isDone := false
	defer func() {
		if !isDone { // f has failed or panicked, and the handler may try again
			giveBack()
		}
	}()
	work := func(ctx context.Context) (json.RawMessage, error) {
		result, err := f(ctx)
		if err != nil {
			return nil, err
		}
		return encodeStep(key, result)
	}
	var data json.RawMessage
	if host, ok := task.host.(StepHost); ok {
		data, err = host.RunStep(ctx, key, work)
	} else {
		data, err = work(ctx)
	}
	if err != nil {
		return none, err
	}
	isDone = true
	return decodeStep[T](key, data)
}

// Save keeps the position of a loop, such as the last row that is done: [Load] returns it in a later run. It replaces
// the value that was saved under the name. Save does not wait until the position is stored: after a crash the position
// may be up to 100 ms old. So a loop may save as often as it likes. A step or a question needs another name.
//
// In a plain call Save stores nothing. Errors: an *[Error] if the value or the task is beyond a limit, and the cause of
// the end of ctx. In the latter case, the next run gets the position if the server hands the task over. If the store has
// refused earlier positions, and nothing has stored them since, the next Save returns that error once. It keeps its own
// position all the same, and tries to store all of them again.
func Save[T any](ctx context.Context, task *Task, name string, value T) error {
	if err := task.usePosition(name); err != nil {
		return err
	}
	data, err := encodeStep(name, value)
	if err != nil {
		return err
	}
	if host, ok := task.host.(StepHost); ok {
		return host.Save(ctx, name, data)
	}
	return nil
}

// Load returns the value that [Save] has kept under a name. It returns false if there is none, as in a plain call. Its
// errors are those of [Step].
func Load[T any](ctx context.Context, task *Task, name string) (T, bool, error) {
	var none T
	if err := task.usePosition(name); err != nil {
		return none, false, err
	}
	host, ok := task.host.(StepHost)
	if !ok {
		return none, false, nil
	}
	data, ok, err := host.Load(ctx, name)
	if err != nil || !ok {
		return none, false, err
	}
	value, err := decodeStep[T](name, data)
	return value, err == nil, err
}

// Sleep waits for d. Meanwhile other handlers have this handler's slot, and the deadline does not run. A run after a
// restart waits only for the rest: Sleep stores when it ends under name, which is the name of a step, see [Step]. It
// returns the cause of the end of ctx if that ends first.
func Sleep(ctx context.Context, task *Task, name string, d time.Duration) error {
	key, _, err := task.takeStepKey(name)
	if err != nil {
		return err
	}
	if host, ok := task.host.(StepHost); ok {
		return host.Sleep(ctx, key, d)
	}
	return task.WithoutSlot(ctx, func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// StepKey returns a key by which the world outside can tell that a request was made before, such as the
// Idempotency-Key of a payment. It is the same in every run of the task, and no other task or name has it. A step whose
// name a run has used before needs its whole name, such as "pay#2". It does not
// reveal the task's ID. In a plain call it is the same until the handler returns.
func StepKey(task *Task, name string) string {
	sum := sha256.Sum256([]byte(task.seed() + "\x00" + name))
	return hex.EncodeToString(sum[:16])
}

// seed returns a text that no other task has.
func (t *Task) seed() string {
	if t.info.ID == "" {
		return t.random
	}
	// A task that the requestor has named may come again under its name.
	return strconv.FormatInt(t.info.Created.UnixMicro(), 36) + "\x00" + t.info.ID
}

// maxStepName is how many bytes the name of a step or a question may have.
const maxStepName = 256

// checkStepName refuses the name of a step or a question.
func checkStepName(name string) error {
	switch {
	case name == "":
		return errors.New("mcptask: a step or a question needs a name")
	case len(name) > maxStepName:
		return fmt.Errorf("mcptask: the name of the step %.40q... has %d bytes, and may have %d", name, len(name), maxStepName)
	case !utf8.ValidString(name): // it is part of the ID by which an answer comes back
		return fmt.Errorf("mcptask: the name of the step %q is not UTF-8", name)
	}
	return nil
}

// encodeStep encodes the value of a step.
func encodeStep[T any](key string, v T) (json.RawMessage, error) {
	data, err := value.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("step %q: a value of type %v cannot be stored as JSON: %w", key, reflect.TypeFor[T](), err)
	}
	return data, nil
}

// decodeStep decodes the stored value of a step. Another version of the program may have stored it.
func decodeStep[T any](key string, data json.RawMessage) (T, error) {
	var decoded T
	if err := json.Unmarshal(data, &decoded); err != nil {
		var none T
		return none, fmt.Errorf("step %q: the stored value does not fit the type %v: %w: if the type has changed, give the step a new name", key, reflect.TypeFor[T](), err)
	}
	return decoded, nil
}
