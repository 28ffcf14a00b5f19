module github.com/mcptaskgen/mcptaskgen/runtime/internal/chaos

go 1.25.0

replace (
	github.com/mcptaskgen/mcptaskgen => ../../..
	github.com/mcptaskgen/mcptaskgen/runtime/postgres => ../../postgres
	github.com/mcptaskgen/mcptaskgen/runtime/sqlite => ../../sqlite
)

require (
	github.com/jackc/pgx/v5 v5.11.0
	github.com/mcptaskgen/mcptaskgen v0.1.0
	github.com/mcptaskgen/mcptaskgen/runtime/postgres v0.1.0
	github.com/mcptaskgen/mcptaskgen/runtime/sqlite v0.1.0
	github.com/modelcontextprotocol/go-sdk v1.8.0
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/gofrs/flock v0.13.0 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	golang.org/x/oauth2 v0.35.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.42.0 // indirect
	golang.org/x/text v0.29.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	modernc.org/libc v1.70.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
	modernc.org/sqlite v1.47.0 // indirect
)
