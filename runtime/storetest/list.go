package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func testPages(k *kit) {
	// Groups of three share a creation time. Their order is then that of the IDs, byte by byte,
	// regardless of language.
	names := []string{"\x01", "A", "Z", "a", "aa", "z", "ä", "€", "\xff"}
	var want []string
	var records []taskstore.Record
	for i := range 24 {
		id := fmt.Sprintf("%s%02d", names[(i%3)*3+i/3%3], i)
		r := k.newRecord(id, "p", k.epoch.Add(time.Duration(i/3)*time.Microsecond))
		records, want = append(records, r), append(want, id)
	}
	for _, i := range rand.Perm(len(records)) {
		k.createRecord(records[i])
		other := records[i]
		other.ID, other.Principal = "of q "+other.ID, "q"
		k.createRecord(other)
	}
	for _, limit := range []int{1, 2, 3, 5, 23, 24, 25, 1000} {
		if got := k.listIDs("p", limit, nil); !slices.Equal(got, want) {
			k.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	if got := k.listIDs("nobody", 5, nil); len(got) != 0 {
		k.Errorf("the list of an unknown principal: %q", got)
	}
	// Every position is valid, with or without a record.
	for _, c := range []struct {
		after taskstore.Position
		want  int
	}{
		{taskstore.Position{}, 0},
		{taskstore.Position{CreatedAt: k.epoch.Add(-time.Microsecond), ID: "zzz"}, 0},
		{taskstore.Position{CreatedAt: records[3].CreatedAt}, 3},
		{taskstore.Position{CreatedAt: records[3].CreatedAt, ID: want[3]}, 4},
		{taskstore.Position{CreatedAt: records[3].CreatedAt, ID: want[3] + "\x00"}, 4},
		{taskstore.Position{CreatedAt: records[5].CreatedAt, ID: "\xff\xff"}, 6},
		{taskstore.Position{CreatedAt: records[23].CreatedAt, ID: want[23]}, 24},
		{taskstore.Position{CreatedAt: k.minutesAfter(1)}, 24},
	} {
		page, err := k.other.List(k.ctx, "p", c.after, 2)
		var got []string
		for _, r := range page {
			got = append(got, r.ID)
		}
		if err != nil || !slices.Equal(got, want[c.want:min(len(want), c.want+2)]) {
			k.Errorf("after %v, %q: %q, %v", c.after.CreatedAt, c.after.ID, got, err)
		}
	}
	k.deleteRecord(want[4])
	page, err := k.s.List(k.ctx, "p", taskstore.Position{CreatedAt: records[4].CreatedAt, ID: want[4]}, 1)
	if err != nil || len(page) != 1 || page[0].ID != want[5] {
		k.Errorf("after the place of a deleted record: %v, %v", page, err)
	}
}

func testPrincipals(k *kit) {
	names := []string{"p", "P", "p ", " p", "pp", "p%", "p_", "%", "", "p\x00", "p\x00q", "\xff", "\xfe", "\ufffd", "é", "e\u0301"}
	for i, name := range names {
		for n := range 3 {
			k.createRecord(k.newRecord(fmt.Sprintf("%d-%d", i, n), name, k.minutesAfter(n)))
		}
	}
	for i, name := range names {
		want := []string{fmt.Sprintf("%d-0", i), fmt.Sprintf("%d-1", i), fmt.Sprintf("%d-2", i)}
		for _, limit := range []int{2, 3, 50} {
			if got := k.listIDs(name, limit, nil); !slices.Equal(got, want) {
				k.Errorf("the list of %q: %q", name, got)
			}
		}
	}
}

func testListUnderChange(k *kit) {
	const records = 120
	var stay []string
	for i := range records {
		id := fmt.Sprintf("t%03d", i)
		k.createRecord(k.newRecord(id, "p", k.epoch.Add(time.Duration(i)*time.Millisecond)))
		if i%2 == 0 {
			stay = append(stay, id)
		}
	}
	n := 0
	seen := k.listIDs("p", 7, func() {
		if gone := 2*n + 1; gone < records { // at first behind the reader
			k.deleteRecord(fmt.Sprintf("t%03d", gone))
		}
		k.createRecord(k.newRecord(fmt.Sprint("early", n), "p", k.minutesAfter(-n-1)))
		k.createRecord(k.newRecord(fmt.Sprint("between", n), "p", k.epoch.Add(time.Duration(n)*time.Millisecond+time.Microsecond)))
		changed := k.getRecord(stay[n%len(stay)]) // an update does not move a record
		changed.UpdatedAt = k.minutesAfter(n)
		k.updateRecord(changed, changed)
		n++
	})
	count := map[string]int{}
	for _, id := range seen {
		if count[id]++; count[id] > 1 {
			k.Errorf("%s was listed twice", id)
		}
		if strings.HasPrefix(id, "early") {
			k.Errorf("%s is before the position of the reader", id)
		}
	}
	for _, id := range stay {
		if count[id] != 1 {
			k.Errorf("%s was omitted", id)
		}
	}
	// The same while other goroutines create and delete records.
	stop := make(chan struct{})
	runConcurrently(3, func(i int) {
		if i == 0 {
			defer close(stop)
			for range 5 {
				seen := k.listIDs("p", 7, nil)
				for _, id := range stay {
					if n := strings.Count(strings.Join(seen, " ")+" ", id+" "); n != 1 {
						k.Errorf("%s was listed %d times", id, n)
					}
				}
			}
			return
		}
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			s, id := k.pickStore(i), fmt.Sprintf("new%d-%d", i, n%50)
			r := k.newRecord(id, "p", k.epoch.Add(time.Duration(n*37%records)*time.Millisecond+time.Duration(i)))
			r, err := s.Create(k.ctx, r, taskstore.Quota{})
			if err != nil {
				k.Errorf("create: %v", err)
				return
			}
			if err := s.Delete(k.ctx, r); err != nil {
				k.Errorf("delete: %v", err)
				return
			}
		}
	})
}
