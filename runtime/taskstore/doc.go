// Package taskstore keeps tasks. A [Store] has the [Record] of each task, whole or not at all, and [Memory] is a Store
// that lives as long as its process. Packages sqlite and postgres have Stores that outlive it.
//
// Package storetest tests implementations of Store. A Store may be an [Inspector] too, which shows the tasks of all
// principals to an operator, and a [SessionStore], so that sessions of 2025-11-25 outlive their process. The Record has
// the life of a task: [Phase] and [Outcome] say how far it is, each [Input] is one of its questions, and the
// [Timeline] has its events.
package taskstore
