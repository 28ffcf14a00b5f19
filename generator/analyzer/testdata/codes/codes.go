// Package codes has errors with codes.
package codes

import mcptask "github.com/mcptaskgen/mcptaskgen/runtime"

const locked = -32050

var code = -32050

var _ = []*mcptask.Error{
	mcptask.Errorf(locked, "x"),                     // want `the error code -32050 is reserved; use one outside of -32768 to -32000`
	mcptask.Errorf(mcptask.CodeMethodNotFound, "x"), // want `the error code -32601 is reserved`
	mcptask.Errorf(mcptask.CodeInvalidParams, "x"),
	mcptask.Errorf(-31999, "x"),
	mcptask.Errorf(code, "x"),
	{Message: "x", Code: -32000}, // want `the error code -32000 is reserved`
	{-32768, "x"},                // want `the error code -32768 is reserved`
	{},
	(&mcptask.Error{Code: 1001}),
}
