package mcptask

// The files *_gen.go here and in internal/dialect are made from schema/. The
// command imports nothing of this package, so it works when they are gone.
//go:generate go run ../generator/internal/wiregen
