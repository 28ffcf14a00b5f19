package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// lookEvery is how often a process looks for workers that have died.
	lookEvery = 250 * time.Millisecond
	// looksPerSweep is how many looks there are for each sweep of files that belong to no worker.
	looksPerSweep = int(time.Minute / lookEvery)
	// lockTries is how often a worker tries to lock its file. Each look or sweep of another process may spoil one try.
	lockTries = 10
	// lockPause is the pause between two tries.
	lockPause = time.Millisecond
)

const (
	selectWorkers = "SELECT id, until FROM worker"
	// endSameLease changes nothing if the worker has renewed its lease since.
	endSameLease = "DELETE FROM worker WHERE id = ? AND until = ?"
)

// lives proves that the workers of this Store live, and finds out which others have died. Each worker has a file beside
// the database. Its process holds a shared lock on it, which the system drops when the process ends. Whoever gets an
// exclusive lock knows that the worker is dead, and ends its lease. If the file is missing or cannot be opened, nothing
// is known, and the lease decides.
type lives struct {
	store  *Store
	logger *slog.Logger
	prefix string // of the paths of all files

	watching context.Context // ends when the store closes
	stop     context.CancelFunc
	watches  sync.WaitGroup

	// Use the following with Store.turn.

	// files has the locked file of each worker. A Flock that nothing refers to loses its lock to the garbage collector.
	files    map[string]*flock.Flock
	isWarned bool // that there is no proof
}

// init sets a lives up, and looks for dead workers. It does not look again until the store has a worker of its own.
func (l *lives) init(ctx context.Context, s *Store, logger *slog.Logger) {
	l.store, l.logger, l.prefix = s, logger, followLinks(s.path)+"-worker-"
	l.watching, l.stop = context.WithCancel(context.Background())
	l.search(ctx, true, true)
}

// followLinks returns the path that SQLite too derives the paths of its other files from.
func followLinks(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return path
}

// close ends the search and the proofs. From then on the leases decide.
func (l *lives) close() {
	l.watches.Wait()
	for worker := range l.files {
		l.leave(worker)
	}
}

// pathOf returns the path of a worker's file, which is also that of the names under which its process finds orphans. The
// worker's name may have any bytes and any length.
func (l *lives) pathOf(worker string) string {
	process, _, _ := strings.Cut(worker, "/")
	sum := sha256.Sum256([]byte(process))
	return l.prefix + hex.EncodeToString(sum[:sumBytes])
}

// sumBytes is how much of a hash the path of a file has.
const sumBytes = 16

// prove makes sure that the worker's file is locked, unless the worker outlasts its process. It reports whether the lock
// is new. Call it in the transaction that begins or renews the lease: whoever gets the file before its lock then fails to
// end the lease.
func (l *lives) prove(worker string, lease time.Duration) (isNew bool) {
	if lease >= taskstore.LastingLease {
		l.leave(worker)
		return false
	}
	if l.files == nil {
		l.files = map[string]*flock.Flock{}
		l.watches.Add(1)
		go l.watch()
	}
	path := l.pathOf(worker)
	if file := l.files[worker]; file != nil {
		if isAt(path, file) {
			return false
		}
		_ = file.Unlock() // somebody has removed the file
		delete(l.files, worker)
	}
	file, err := lockFile(path)
	switch {
	case err != nil && !l.isWarned:
		l.isWarned = true
		l.logger.Warn("if this process dies, its tasks wait until its lease ends: cannot lock a file beside the database", "file", path, "error", err)
	case file != nil:
		l.files[worker] = file
	}
	return file != nil
}

// lockFile makes a file if there is none, and locks it. It returns nil if others have spoiled all tries.
func lockFile(path string) (_ *flock.Flock, err error) {
	for try := range lockTries {
		if try > 0 {
			<-time.After(lockPause)
		}
		file := flock.New(path)
		var isLocked bool
		if isLocked, err = file.TryRLock(); isLocked && isAt(path, file) {
			return file, nil
		} else if isLocked { // who looks or sweeps has removed it
			_ = file.Unlock()
			continue
		}
		// Who looks or sweeps has it, or nobody may lock it. A file without the worker's lock makes the worker seem dead.
		// Windows may not remove a file that others have open.
		failed := err != nil
		if removed := os.Remove(path); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
		if failed {
			break
		}
	}
	return nil, err
}

// isAt reports whether a locked file still has its path.
func isAt(path string, file *flock.Flock) bool {
	own, err := file.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(path)
	return err == nil && os.SameFile(own, found)
}

// leave ends the proof of a worker.
func (l *lives) leave(worker string) {
	if file := l.files[worker]; file != nil {
		discard(file)
		delete(l.files, worker)
	}
}

// discard removes a locked file and unlocks it. If that fails, a sweep removes it later.
func discard(file *flock.Flock) {
	path := file.Path()
	if !isAt(path, file) {
		_ = file.Unlock()
		return
	}
	if runtime.GOOS == "windows" { // which removes no open file
		_ = file.Unlock()
		_ = os.Remove(path)
		return
	}
	_ = os.Remove(path)
	_ = file.Unlock()
}

// watch searches until the store closes.
func (l *lives) watch() {
	defer guard.Recover(l.logger, "the search for dead workers")
	defer l.watches.Done()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	isFine := true
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-l.watching.Done():
			return
		}
		isFine = l.search(l.watching, n%looksPerSweep == 0, isFine)
	}
}

// search looks, and may sweep. It reports whether that succeeded, and logs the first of several failures.
func (l *lives) search(ctx context.Context, sweep, wasFine bool) (isFine bool) {
	err := l.look(ctx)
	if err == nil && sweep {
		err = l.sweep(ctx)
	}
	if err != nil && wasFine && ctx.Err() == nil {
		l.logger.Warn("the search for dead workers failed, and is repeated; meanwhile their leases decide", "error", err)
	}
	return err == nil
}

// look ends the leases of workers that have died.
func (l *lives) look(ctx context.Context) error {
	type lease struct {
		worker string
		until  int64
	}
	var dead []lease
	files := map[string]*flock.Flock{} // by path; nil if the worker lives, or if nothing is known
	end := func(file *flock.Flock) { _ = file.Unlock() }
	defer func() {
		for _, file := range files {
			if file != nil {
				end(file)
			}
		}
	}()
	if err := l.store.read(ctx, "read", func(r *session) error {
		return r.query(selectWorkers, func(rows *sql.Rows) error {
			var one lease
			err := rows.Scan(&one.worker, &one.until)
			path := l.pathOf(one.worker)
			if _, ok := files[path]; !ok {
				files[path] = lockUnused(path)
			}
			if files[path] != nil {
				dead = append(dead, one)
			}
			return err
		})
	}); err != nil || len(dead) == 0 {
		return err
	}
	if err := l.store.write(ctx, "write to", func(w *transaction) error {
		for _, one := range dead {
			ended, err := w.exec(endSameLease, []byte(one.worker), one.until)
			if err != nil {
				return err
			}
			n, err := ended.RowsAffected()
			if err == nil && n > 0 {
				err = w.freeTasks(one.worker)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	end = discard
	return nil
}

// lockUnused locks a file that no process has a lock on. Otherwise, or if there is no file, it returns nil. It does not
// make a file: the worker whose file somebody has removed may live.
func lockUnused(path string) *flock.Flock {
	file := flock.New(path, flock.SetFlag(os.O_RDONLY))
	if ok, err := file.TryLock(); !ok || err != nil {
		return nil
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() { // no worker has made it
		_ = file.Unlock()
		return nil
	}
	return file
}

// sweep removes the files of workers that have died without a lease.
func (l *lives) sweep(ctx context.Context) error {
	directory, prefix := filepath.Split(l.prefix)
	files, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	workers := map[string]bool{} // by path
	if err := l.store.read(ctx, "read", func(r *session) error {
		return r.query(selectWorkers, func(rows *sql.Rows) error {
			var worker string
			var until int64
			err := rows.Scan(&worker, &until)
			workers[l.pathOf(worker)] = true
			return err
		})
	}); err != nil {
		return err
	}
	for _, entry := range files {
		sum, ok := strings.CutPrefix(entry.Name(), prefix)
		if n, err := hex.DecodeString(sum); !ok || err != nil || len(n) != sumBytes || workers[l.prefix+sum] {
			continue
		}
		if file := lockUnused(l.prefix + sum); file != nil {
			discard(file)
		}
	}
	return nil
}
