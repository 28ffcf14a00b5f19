package steady

import (
	"testing"
	"time"
)

// machine is a machine with a wall clock that jumps, and another clock that does not.
type machine struct {
	wall    time.Time
	elapsed time.Duration
}

func (m *machine) read() (time.Time, time.Duration) { return m.wall, m.elapsed }

// pass lets time pass, in steps, in which the clock is read.
func (m *machine) pass(c *Clock, d time.Duration) {
	for ; d > 0; d -= time.Second {
		m.wall, m.elapsed = m.wall.Add(min(d, time.Second)), m.elapsed+min(d, time.Second)
		c.Now()
	}
}

// TestClock moves the machine's clock in the ways in which that happens.
func TestClock(t *testing.T) {
	const day = 25 * time.Hour
	for _, test := range []struct {
		name string
		// act changes the machine, and returns how far behind its clock the Clock has to be.
		act func(m *machine, c *Clock) (behind time.Duration)
	}{
		{"it goes on", func(m *machine, c *Clock) time.Duration {
			m.pass(c, 2*time.Hour)
			return 0
		}},
		{"nobody reads it", func(m *machine, _ *Clock) time.Duration {
			m.wall, m.elapsed = m.wall.Add(day), m.elapsed+day
			return 0
		}},
		{"small corrections", func(m *machine, c *Clock) time.Duration {
			for range 1000 {
				m.wall = m.wall.Add(300 * time.Millisecond)
				m.pass(c, time.Second)
			}
			return 0
		}},
		{"a jump", func(m *machine, c *Clock) time.Duration {
			m.wall = m.wall.Add(day)
			m.pass(c, 2*time.Second)
			return day
		}},
		{"a jump and back", func(m *machine, c *Clock) time.Duration {
			m.wall = m.wall.Add(day)
			m.pass(c, 2*time.Second)
			m.wall = m.wall.Add(-day)
			return 0
		}},
		{"many short jumps", func(m *machine, c *Clock) time.Duration {
			for range 100 {
				m.wall = m.wall.Add(day)
				m.pass(c, 2*time.Second)
				m.wall = m.wall.Add(-day)
				m.pass(c, time.Second)
			}
			m.wall = m.wall.Add(day)
			return day
		}},
		{"the first reading after a long pause is in a jump", func(m *machine, _ *Clock) time.Duration {
			m.wall, m.elapsed = m.wall.Add(2*time.Hour+day), m.elapsed+2*time.Hour
			return day
		}},
		{"a sleep of the machine", func(m *machine, c *Clock) time.Duration {
			m.wall = m.wall.Add(8 * time.Hour)
			m.pass(c, Hold+time.Second)
			return 0
		}},
		{"a jump at the end of a sleep of the machine", func(m *machine, c *Clock) time.Duration {
			m.wall = m.wall.Add(8 * time.Hour)
			m.pass(c, Hold-time.Second)
			m.wall = m.wall.Add(day)
			m.pass(c, 2*time.Second)
			return day
		}},
		{"the clock is set back", func(m *machine, c *Clock) time.Duration {
			m.wall = m.wall.Add(-day)
			return 0
		}},
		{"the clock is set back for a moment", func(m *machine, c *Clock) time.Duration {
			m.wall = m.wall.Add(-day)
			m.pass(c, 2*time.Second)
			m.wall = m.wall.Add(day)
			m.pass(c, 2*time.Second)
			return day
		}},
		{"it begins after a pause", func(m *machine, c *Clock) time.Duration {
			c.Doubt(m.wall.Add(-time.Hour))
			m.pass(c, 2*time.Second)
			return time.Hour
		}},
		{"it began long ago after a pause", func(m *machine, c *Clock) time.Duration {
			c.Doubt(m.wall.Add(-time.Hour))
			m.pass(c, Hold+time.Second)
			return 0
		}},
		{"what is known lies ahead", func(m *machine, c *Clock) time.Duration {
			c.Doubt(m.wall.Add(time.Hour))
			return 0
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &machine{wall: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), elapsed: time.Hour}
			c := NewReader(m.read)
			c.Now()
			behind := test.act(m, c)
			if got := c.Now(); !got.Equal(m.wall.Add(-behind)) {
				t.Errorf("the clock is %v behind, want %v", m.wall.Sub(got), behind)
			}
		})
	}
}
