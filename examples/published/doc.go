// Package published has the lists of tools of published servers, as mcptaskgen tools recorded them.
// Its tests generate a client and a server from each list. They compare what the server lists with
// the list, and call the published servers that run on one machine alone.
package published
