// Package chaos checks what a server and its store promise while processes die.
//
// Its tests run servers in processes of their own, call them in both revisions, and kill, stop and cut
// off what they run on. Clients, handlers and the tests themselves write down what they did and saw:
// a [History]. [Check] compares the history with the promises.
//
// A history has gaps. A client whose connection broke does not know whether its request was carried out,
// and a process that was killed has not written its last words. Check reports only what no order of
// events explains.
package chaos
