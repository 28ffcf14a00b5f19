module github.com/mcptaskgen/mcptaskgen/runtime/sqlite

go 1.25.0

replace github.com/mcptaskgen/mcptaskgen => ../..

require (
	github.com/gofrs/flock v0.13.0
	github.com/google/go-cmp v0.7.0
	github.com/mcptaskgen/mcptaskgen v0.1.0
	modernc.org/sqlite v1.47.0
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	golang.org/x/sys v0.42.0 // indirect
	golang.org/x/text v0.14.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	modernc.org/libc v1.70.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
	pgregory.net/rapid v1.2.0 // indirect
)
