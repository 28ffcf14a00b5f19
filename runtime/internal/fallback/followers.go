package fallback

import (
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// followers counts the repeated calls that follow each task in this process. A client may send one call twice,
// or again before its first connection is found broken: the end of one must not stop the work of the other.
type followers struct {
	mu    sync.Mutex
	tasks map[string]*followed // by caller and task
}

// followed is a task that repeated calls follow.
type followed struct {
	calls int
	// passed says that one of these calls was answered with the task or its questions: its client goes on.
	passed bool
}

// followersOf returns the followers of a server's tasks.
func followersOf(s *taskserver.Backend) *followers {
	type attached struct{}
	return s.Attached(attached{}, func() any { return &followers{tasks: map[string]*followed{}} }).(*followers)
}

// follower is one repeated call.
type follower struct {
	of   *followers
	task string
	left bool
}

// add adds a call. Its end is told with leave.
func (f *followers) add(task string) *follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tasks[task] == nil {
		f.tasks[task] = &followed{}
	}
	f.tasks[task].calls++
	return &follower{of: f, task: task}
}

// pass says that the call is answered with the task or its questions.
func (f *follower) pass() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.of.tasks[f.task].passed = true
}

// leave removes the call, if it is not removed yet. It returns true if nobody waits for the task any more: no
// other call follows it here, and none was answered with it meanwhile.
func (f *follower) leave() (alone bool) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.left {
		return false
	}
	f.left = true
	task := f.of.tasks[f.task]
	if task.calls--; task.calls > 0 {
		return false
	}
	delete(f.of.tasks, f.task)
	return !task.passed
}
