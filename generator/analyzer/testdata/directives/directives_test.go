package directives

/* want `a directive in a test file is not read; move it` */ //mcptask:service
type inTest interface{}
