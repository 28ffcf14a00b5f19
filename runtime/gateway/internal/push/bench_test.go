package push

import (
	"fmt"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// BenchmarkHandlerWrite measures what a change of a task costs its handler without the store's part, by the number of
// sessions that know the task.
func BenchmarkHandlerWrite(b *testing.B) {
	for _, sessions := range []int{0, 1, 100} {
		b.Run(fmt.Sprint(sessions), func(b *testing.B) {
			store := taskstore.NewMemory()
			h := serve(b, store)
			r := create(b, store, taskstore.Record{ID: "task", Phase: taskstore.PhaseRunning})
			for range sessions {
				s := newPeer(h, "p", `{}`)
				defer s.Close()
				c := s.Connect(nil, "")
				s.Know(legacy, r)
				go func() {
					for {
						select {
						case <-c.Wake():
							c.Take()
						case <-b.Context().Done():
							return
						}
					}
				}()
			}
			messages := [2]string{"one", "two"}
			b.ReportAllocs()
			for b.Loop() {
				r.Version++
				r.StatusMessage = messages[r.Version%2]
				h.observe(r)
			}
		})
	}
}
