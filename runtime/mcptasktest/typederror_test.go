package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/failures"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// library fails. If it has a library behind it, that one fails, and its error is returned.
type library struct {
	behind *failures.LibraryClient
}

func (l library) Publish(ctx context.Context, task *mcptask.Task, in failures.Asset) (failures.Report, error) {
	if l.behind != nil {
		return l.behind.Publish(ctx, in)
	}
	return failures.Report{}, fmt.Errorf("publish %s: %w", in.Name, l.Restore(ctx, in))
}

func (library) Restore(_ context.Context, in failures.Asset) error {
	switch in.Name {
	case "full":
		return failures.DiskFull{Missing: 1 << 60}
	case "busy":
		return failures.Busy()
	}
	return failures.NewNotFound(in.Name, mcptask.Errorf(4004, "the cause"))
}

// TestTypedErrors returns typed errors from handlers, in tasks, plain calls, and through a second server.
func TestTypedErrors(t *testing.T) {
	for revision, capabilities := range mcptask.Declared() {
		t.Run(revision, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				connect := func(l library) mcptask.Conn {
					tools := failures.LibraryTools(l)
					tools.Capabilities = mcptask.Capabilities{revision: capabilities}
					var tb testing.TB = t
					if revision == mcptask.Revision20251125 || revision == mcptask.Revision20260728 { // those with a schema
						tb = wirecheck.TB(t)
					}
					return mcptasktest.Connect(tb, revision, mcptasktest.Options{}, tools, failures.ArchiveTools(l))
				}
				first := connect(library{})
				second := connect(library{failures.NewLibraryClient(first)})
				for name, conn := range map[string]mcptask.Conn{"one server": first, "two servers": second} {
					client, archive := failures.NewLibraryClient(conn), failures.NewArchiveClient(conn)
					for text, publish := range map[string]func(asset string) error{
						"publish: publish %s: ": func(asset string) error {
							_, err := client.Publish(t.Context(), failures.Asset{Name: asset})
							return err
						},
						"archive_restore: %.0s": func(asset string) error {
							return archive.Restore(t.Context(), failures.Asset{Name: asset}, mcptask.Plain())
						},
					} {
						var notFound *failures.NotFound
						if err := publish("a01"); !errors.As(err, &notFound) || notFound.Asset != "a01" || mcptask.CodeOf(err) != "not_found" || err.Error() != fmt.Sprintf(text, "a01")+"there is no asset a01" {
							t.Errorf("%s: %v, %+v", name, err, notFound)
						}
						var full failures.DiskFull
						if err := publish("full"); !errors.As(err, &full) || full.Missing != 1<<60 || errors.As(err, &notFound) {
							t.Errorf("%s: %v, %+v", name, err, full)
						}
						if err := publish("busy"); mcptask.CodeOf(err) != "busy" {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
			})
		})
	}
}
