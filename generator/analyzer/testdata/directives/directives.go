// Package directives has what the generator would not take, and never runs it.
package directives

import "context"

/* want `mcptask:service stands above nothing; put it directly above an interface type, without a blank line between` */ //mcptask:service

type S interface {
	Run(ctx context.Context) error
}

// T is declared.
//
/* want `this looks like a directive but is none: a directive has no space after //; write it as //mcptask:service, on a line of its own` */ // mcptask: Service prefix=x
type T interface {
	/* want `mcptask:tool stands above a method of an interface that is no service` */ //mcptask:tool
	Run(ctx context.Context) error
}

/* want `unknown directive mcptask:servce; did you mean //mcptask:service\?` */ //mcptask:servce
type U interface{}

/* want `this looks like a directive but is none: a directive is a line comment` */ /*mcptask:tool*/

// mcptask: this is prose, and so is mcptask:tool inside of a line.
type V struct{}
