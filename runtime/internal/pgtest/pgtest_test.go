package pgtest

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// readOne reads one value from a database.
func readOne(t *testing.T, dsn, sql string) (value string) {
	t.Helper()
	value, err := query(t.Context(), dsn, sql)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestDatabasesAreApart(t *testing.T) {
	a, b := Database(t), Database(t)
	readOne(t, a, "WITH x AS (SELECT 1) SELECT current_database()")
	if x, y := readOne(t, a, "SELECT current_database()"), readOne(t, b, "SELECT current_database()"); x == y {
		t.Errorf("both databases are %s", x)
	}
	if fsync := readOne(t, a, "SHOW fsync"); fsync != "off" {
		t.Errorf("fsync is %s", fsync)
	}
}

func TestDurableOverTCP(t *testing.T) {
	s := Start(t, Options{Durable: true, TCP: true})
	dsn := s.Database(t)
	if fsync := readOne(t, dsn, "SHOW fsync"); fsync != "on" {
		t.Errorf("fsync is %s", fsync)
	}
	if name := readOne(t, "postgres://mcptask@"+s.Address+"/postgres?sslmode=disable", "SELECT current_database()"); name != "postgres" {
		t.Errorf("the database is %s", name)
	}
}

// TestServerEndsWithItsTests kills a test binary, and waits until its server is gone.
func TestServerEndsWithItsTests(t *testing.T) {
	const variable = "MCPTASK_PGTEST_CHILD"
	if os.Getenv(variable) != "" {
		os.Stdout.WriteString(Start(t, Options{}).directory + "\n") //nolint:errcheck // the parent waits for it
		select {}
	}
	findPrograms(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	child.Process.Kill() //nolint:errcheck // it may have ended by itself, which is an error below
	child.Wait()         //nolint:errcheck // it was killed
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for directory := line[:len(line)-1]; ; {
		if _, err := os.Stat(directory); os.IsNotExist(err) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is still there", directory)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
