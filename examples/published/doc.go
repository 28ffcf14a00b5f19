// Package published has the lists of tools of published servers, as mcptaskgen tools recorded them.
// Its tests generate a client and a server from each list. They compare the list of that server
// with the recorded one, and call the published servers that run on one machine alone.
package published
