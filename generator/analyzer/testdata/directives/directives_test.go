package directives

/* want `the generator does not read directives in test files; move` */ //mcptask:service
type inTest interface{}
