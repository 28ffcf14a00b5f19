// Package directives has what the generator would not take, and never runs it.
package directives

import "context"

/* want `mcptask:service is not above any declaration; put it directly above an interface type, without a blank line between` */ //mcptask:service

type S interface {
	Run(ctx context.Context) error
}

// T is declared.
//
/* want `this looks like a directive but is not one: a directive must not have a space after //; write it as //mcptask:service, on its own line` */ // mcptask: Service prefix=x
type T interface {
	/* want `mcptask:tool is above a method of an interface that is not a service` */ //mcptask:tool
	Run(ctx context.Context) error
}

/* want `unknown directive mcptask:servce; did you mean //mcptask:service\?` */ //mcptask:servce
type U interface{}

/* want `this looks like a directive but is not one: a directive is a line comment` */ /*mcptask:tool*/

// mcptask: this is prose, and so is mcptask:tool inside of a line.
type V struct{}

//mcptask:service
type W interface {
	// A misspells a key.
	//
	/* want `unknown key "Tll" of mcptask:tool; did you mean "ttl"\?` */ //mcptask:tool readonly Tll=1h title="A"
	A(ctx context.Context) error
	// B has a key that is near to none.
	//
	/* want `unknown key "colour" of mcptask:tool; the keys are ` */ //mcptask:tool colour=red
	B(ctx context.Context) error
}

type X interface {
	/* want `mcptask:tool is above a method of an interface that is not a service` */ //mcptask:tool
	Run(ctx context.Context) error
}
