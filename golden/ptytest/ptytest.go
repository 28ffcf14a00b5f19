// Package ptytest is a pseudo-terminal with a person at it, for tests of programs that need one. It works on Linux.
package ptytest
