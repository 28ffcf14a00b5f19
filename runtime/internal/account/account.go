// Package account reads the names of accounts, by which the tasks of a caller count together.
package account

import "strings"

// These begin the parts of an account, in this order.
const (
	Local     = "local "
	Address   = "address "
	Principal = "principal "
	Session   = "session "
)

// CutAddress cuts the address off an account. It returns "" if the account has none.
func CutAddress(account string) (address, rest string) {
	of, ok := strings.CutPrefix(account, Address)
	if !ok {
		return "", account
	}
	address, rest, _ = strings.Cut(of, " ")
	return address, rest
}

// KeyOfAddress returns the key of an address among accounts. No account has this name.
func KeyOfAddress(address string) string { return "all of " + address }
