package mcptask

// The files *_gen.go here and in internal/protocol are generated from schema/. The
// command does not import this package, so it works even if they are missing.
//go:generate go run ../generator/internal/wiregen
