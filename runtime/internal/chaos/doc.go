// Package chaos checks the promises of a server and its store while processes die.
//
// Its tests run servers in processes of their own, call them in both revisions, and kill, stop and cut off the
// processes that they run on. Clients, handlers and the tests themselves write down their actions and observations: a
// [History]. [Check] compares the history with the promises.
//
// A history has gaps. A client whose connection broke does not know whether its request was carried out, and a process
// that was killed has not written its last words. Check reports only faults that no order of events explains.
package chaos
