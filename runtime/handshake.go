package mcptask

// GeneratedV1 is named by generated code, so that a program whose runtime is
// older than the generator fails to compile instead of misbehaving.
const GeneratedV1 = true
