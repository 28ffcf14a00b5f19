// Package wiretest is what the tests of the wire share. Only tests import it.
//
// Servers: ServeWith, with the tools of pipeline.go, driven.go (tasks that do as the
// test says) and ask.go (tasks that ask). Literal clients of them: Peer over HTTP,
// its streams as a Feed; Piped over pipes in the process; NewPipes over pipes of a server that is
// a process. Goroutines counts what is left.
package wiretest
