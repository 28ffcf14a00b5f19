package mcptask

// GeneratedV1 makes a program fail to compile if its runtime is older than the
// generator that wrote its code: generated code names this constant.
const GeneratedV1 = true

// When generated code starts to need a name or a meaning that golden/compat does
// not list for a released version, it must name a new constant, GeneratedV2. No
// such constant is ever removed.
