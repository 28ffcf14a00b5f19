// Package leftover declares nothing any more.
package leftover
