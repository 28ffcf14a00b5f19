//go:build long

package siege_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk/internal/siege"
)

// mutationWork bounds the bytes that the server allocates in all for one mutated request of at most 256 KiB. Allocation
// measures the work even on a busy machine.
const mutationWork = 128 << 20

// TestMutations sends the corpus of FuzzHTTP, and random mutations of it, to a server in its own process. If an input
// ends that process, the test sees it. With MCPTASK_SIEGE=full there are many mutations, and each run has others.
func TestMutations(t *testing.T) {
	t.Parallel()
	requests := append(siege.Requests(), corpus(t)...)
	b := besiege(t, config{Bearer: true, Limits: `{"Polls":-1,"Lists":-1}`})
	defer b.guard(patience*time.Duration(scale(1)+1), raced*budgetPeak<<20)()
	m := &mutator{t: t, besieged: b, enemy: newEnemy(t, b.address, "mallory"), tasks: map[string]string{}}
	victim := newEnemy(t, b.address, "victim")
	m.tasks["$VICTIM"] = victim.send(victim.tool("work", "{}", true)).task()
	seed := uint64(1)
	if os.Getenv("MCPTASK_SIEGE") == "full" {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var checked [][2]string // what is checked against a schema
	for _, request := range requests {
		if _, ok := siege.Place([]byte(request[1])); ok {
			checked = append(checked, request)
		}
	}
	for i := range scale(400) {
		request, how := requests[r.IntN(len(requests))], byte(r.UintN(siege.Twists+1))
		if n := i / 2; i%2 == 0 { // one after the other
			request, how = checked[n%len(checked)], byte(1+n/len(checked)%siege.Twists)
		}
		head, body := request[0], []byte(request[1])
		place, ok := siege.Place(body)
		if !ok {
			place = uint16(r.UintN(1 << 16))
		}
		body = siege.Twist(body, how, place, uint16(r.ExpFloat64()*3000))
		if r.IntN(8) == 0 {
			body = mutate(r, body)
		}
		if r.IntN(10) == 0 {
			head = string(mutate(r, []byte(head)))
		}
		if i%20 == 0 {
			m.prepare()
			m.before = m.look()
		}
		m.send(head, body)
	}
	if r := victim.send(victim.modern("tasks/get", m.tasks["$VICTIM"], fmt.Sprintf(`"taskId":%q,`, m.tasks["$VICTIM"]), true)); !bytes.Contains(r.body, []byte("working")) {
		t.Errorf("the victim's task: %s", r.body)
	}
}

// corpus returns the inputs of FuzzHTTP that are kept in files.
func corpus(t *testing.T) (requests [][2]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "fuzz", "FuzzHTTP", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var request [2]string
		lines := strings.Split(string(text), "\n")
		for i, kind := range []string{"string(", "[]byte("} {
			value := strings.TrimSuffix(strings.TrimPrefix(lines[i+1], kind), ")")
			if request[i], err = strconv.Unquote(value); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		requests = append(requests, request)
	}
	return requests
}

// mutate changes a few bytes, or repeats or drops some.
func mutate(r *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + r.IntN(4) {
		if len(data) == 0 {
			return data
		}
		from := r.IntN(len(data))
		to := min(from+1+r.IntN(16), len(data))
		switch r.IntN(4) {
		case 0:
			data[from] = byte(r.UintN(256))
		case 1:
			data = append(data[:from], data[to:]...)
		case 2:
			data = bytes.Join([][]byte{data[:to], data[from:]}, nil)
		case 3:
			data = bytes.Join([][]byte{data[:from], []byte(siege.Poison[r.IntN(len(siege.Poison))]), data[to:]}, nil)
		}
	}
	return data
}

// mutator sends requests that may contain anything.
type mutator struct {
	t *testing.T
	*besieged
	enemy *enemy
	tasks map[string]string // values of the placeholders
}

// prepare makes the tasks that the requests attack.
func (m *mutator) prepare() {
	m.enemy.open()
	m.tasks["$SESSION"] = m.enemy.session
	for name, tool := range map[string]string{"$DONE": "quick", "$ASK": "bound_ask", "$BOUND": "bound_ask"} {
		m.tasks[name] = m.enemy.send(m.enemy.tool(tool, "{}", true)).task()
	}
}

// send sends one request and checks the work that it makes. It leaves a stream after a moment.
func (m *mutator) send(head string, body []byte) {
	m.t.Helper()
	var pairs []string
	for name, value := range m.tasks {
		pairs = append(pairs, name, value)
	}
	fill := strings.NewReplacer(pairs...)
	line, headers, _ := strings.Cut(fill.Replace(head), "\n")
	body = []byte(fill.Replace(string(body)))
	conn, err := net.Dial("tcp", strings.TrimPrefix(m.address, "http://"))
	if err != nil {
		m.t.Fatalf("it does not serve any more: %v", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		m.t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer mallory\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n\r\n%s",
		line, len(body), strings.ReplaceAll(strings.Trim(headers, "\n"), "\n", "\r\n"), body)
	if err == nil {
		in := bufio.NewReader(conn)
		if _, err = in.ReadByte(); err == nil { // the response has begun, and may have no end
			_ = conn.SetDeadline(time.Now().Add(10 * time.Millisecond))
			_, _ = io.Copy(io.Discard, in)
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		m.t.Errorf("no answer to %q\n%.2000q", head, body)
	}
	s := m.look() // the process is still there
	worked := s.Allocated - m.before.Allocated
	if m.before = s; worked > mutationWork {
		m.t.Errorf("%d MiB are allocated for %q\n%.2000q", worked>>20, head, body)
	}
	if len(s.Panics) > 0 {
		m.t.Fatalf("%s\nfor %q\n%.2000q", s.Panics, head, body)
	}
}
