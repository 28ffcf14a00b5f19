package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// stopChild is how long a child may take to end after it was asked to. It is shorter than taskserver.Options.Drain.
const stopChild = 3 * time.Second

// runChild runs a child process until it ends or ctx ends. It gives each line of the child's standard output to report.
func runChild(ctx context.Context, report func(line string), program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = stopChild // then the child is killed, and its output is not read any more
	release := bindChild(cmd)
	defer release()
	if _, err := cmd.StdinPipe(); err != nil { // its end tells the child that this process is gone
		return err
	}
	var complaint tail
	cmd.Stdout, cmd.Stderr = &lines{report: report}, &complaint
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	endGroup(cmd)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(complaint.text))
	}
	return errors.Join(err, context.Cause(ctx))
}

// lines gives whole lines to report.
type lines struct {
	rest   []byte
	report func(line string)
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.report(string(line))
		l.rest = rest
	}
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2048):]
	return len(p), nil
}

// export is the child: it writes a report, and prints how many rows it has written. It ends with its parent, whose end
// ends its standard input.
func export(ctx context.Context, in io.Reader, out io.Writer, m mode) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		leave()
	}()
	file, err := os.OpenFile(m.export, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for row := 1; err == nil && row <= m.rows; row++ {
		_, err = fmt.Fprintf(file, "%d,%d\n", row, row*row)
		fmt.Fprintln(out, row)
		err = errors.Join(err, pause(ctx, m.pace))
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
