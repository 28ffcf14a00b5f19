// Package wiretest has the servers and clients that the tests of the wire share. Only tests import
// it.
//
// ServeWith starts a server with the tools of pipeline.go, driven.go (tasks that do what the test
// tells them) and ask.go (tasks that ask). Three clients speak literal JSON: Peer over HTTP, with a
// Feed for each stream, Piped over pipes in the process, and NewPipes over pipes to a server in its
// own process. Goroutines finds goroutines that are left.
package wiretest
