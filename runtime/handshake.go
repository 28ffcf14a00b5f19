package mcptask

// GeneratedV1 is named by generated code, so that a program whose runtime is
// older than the generator fails to compile. Where generated code is to need
// more of this package than golden/compat lists for what is released, a name or
// a meaning, it names a new GeneratedV2 instead. Neither is ever removed.
const GeneratedV1 = true
