// Command cluster shows three replicas of one server behind a round-robin proxy, with their tasks in
// one PostgreSQL. Clients of both revisions start tasks, a replica is killed while they run, and
// nothing is lost.
//
//	cluster                          everything, with a temporary PostgreSQL
//	cluster -postgres DSN            everything, with this PostgreSQL
//	cluster -replica 1 -http :8080   only a replica, at /mcp
//	cluster -call URL                only the clients, against replicas behind this URL
//
// A replica and the clients read the environment: MCPTASK_POSTGRES is the connection string, and
// MCPTASK_TOKEN the clients' bearer token.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/localpg"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/replicas"
	"github.com/mcptaskgen/mcptaskgen/runtime/postgres"
)

// The environment of the replicas and the clients.
const (
	postgresVariable = "MCPTASK_POSTGRES"
	tokenVariable    = "MCPTASK_TOKEN"
)

const (
	// count is how many replicas there are.
	count = 3
	// demoWithin is how long the clients may take. If a proxy of the database hides the death of the killed replica, its
	// lease lasts 30 seconds.
	demoWithin = 3 * time.Minute
)

// mode holds the values of the flags.
type mode struct {
	postgres, addr, url string
	replica             int
	attached            bool
}

func main() {
	var m mode
	flag.StringVar(&m.postgres, "postgres", os.Getenv(postgresVariable),
		"keep the tasks in the PostgreSQL of this `DSN`; the default is $"+postgresVariable+", and then a temporary one")
	flag.IntVar(&m.replica, "replica", 0, "run only the replica of this `number`")
	flag.StringVar(&m.addr, "http", "127.0.0.1:8080", "serve the replica's /mcp at this `address`")
	flag.BoolVar(&m.attached, "attached", false, "end the replica at the end of standard input")
	flag.StringVar(&m.url, "call", "", "run only the clients, against this `URL`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "cluster: unknown argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, m); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, m mode) error {
	switch {
	case m.replica != 0 && m.url != "":
		return errors.New("-replica and -call exclude each other")
	case m.replica != 0 && m.postgres == "":
		return fmt.Errorf("a replica needs -postgres or %s", postgresVariable)
	case m.replica != 0:
		if m.attached {
			var end context.CancelFunc
			ctx, end = context.WithCancel(ctx)
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				end()
			}()
		}
		return serveReplica(ctx, out, m)
	case m.url != "":
		return showClients(ctx, out, demo{url: m.url, token: os.Getenv(tokenVariable)})
	}
	return showCluster(ctx, out, m.postgres)
}

// showCluster starts everything, shows the clients, and stops everything.
func showCluster(ctx context.Context, out io.Writer, dsn string) (err error) {
	if dsn == "" {
		database, err := localpg.Start(ctx)
		if err != nil {
			return fmt.Errorf("%w, or name one that runs with -postgres DSN or %s", err, postgresVariable)
		}
		defer func() { err = errors.Join(err, database.Close()) }()
		dsn = database.DSN()
		fmt.Fprintln(out, "started a temporary PostgreSQL")
	}
	store, err := postgres.Open(ctx, dsn, postgres.Options{})
	if err != nil {
		return fmt.Errorf("-postgres: %w; start that PostgreSQL or name another", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	token := rand.Text()
	environment := append(os.Environ(), postgresVariable+"="+dsn, tokenVariable+"="+token)
	set, err := replicas.Start(ctx, count, func(ctx context.Context, number int) *exec.Cmd {
		cmd := exec.CommandContext(ctx, self, "-replica", strconv.Itoa(number), "-http", "127.0.0.1:0", "-attached")
		cmd.Env = environment
		return cmd
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	fmt.Fprintf(out, "started replicas 1, 2 and 3 behind the proxy %s\n", set.URL)
	return showClients(ctx, out, demo{url: set.URL, token: token, replicas: set, store: store})
}

// showClients runs the clients, for a while at most.
func showClients(ctx context.Context, out io.Writer, d demo) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoWithin, fmt.Errorf("the films were not ready within %v", demoWithin))
	defer cancel()
	d.out = out
	return d.run(ctx)
}
