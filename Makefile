# What CI does is in .ci/run; these are the parts that one wants by hand.
.PHONY: test soak hosts race lint generate golden freeze release rehearse apidiff rules bench benchmarks bench-generator weight cost fuzz siege chaos screenshot console-picture moving-picture temporal temporal-server bench-temporal ci

# How long each fuzz target runs, and which benchmarks: make fuzz FUZZTIME=5m, make benchmarks BENCH=Get
FUZZTIME ?= 30s
BENCH ?= .

# All tests. Those that miss a program (node, curl) say so and are skipped.
test:
	go test work

# All that .ci/run leaves out or has a sample of, whole: hours. Then fuzzing, and the harder forms of two tests, for as
# long as FUZZTIME, KILLS and SIEGETIME say. CONTRIBUTING.md says who runs it, and when.
soak:
	bash .ci/run soak
	$(MAKE) fuzz chaos siege

# Published clients and bridges against the server in examples/hosts, for about four minutes. ARGS=-update writes what
# they did into docs/connect-clients.md.
hosts:
	npm ci --prefix examples/hosts --no-audit --no-fund --loglevel=error
	go test -tags long -count=1 ./examples/hosts $(ARGS)

# The modules of Temporal: the adapter, and the example with its tests on a server. Cached results of the example
# do not see changes of the page that a test compiles.
temporal: temporal-server
	bash .ci/run with_temporal go -C runtime/temporal test ./...
	go -C examples/temporal test -count=1 ./...

# The Temporal server for these tests. It takes minutes the first time.
temporal-server:
	go -C examples/temporal/testserver build -o bin/ .

# A task on Temporal beside a workflow with one activity, and beside a task of the local executor.
bench-temporal: temporal-server
	go -C examples/temporal test -run '^$$' -bench . -benchtime 10s -count 3 ./internal/proof

# The tests of the runtime, in which goroutines meet, under the race detector.
race:
	bash .ci/run race

# The linter, in the version that CI has.
lint:
	bash .ci/run lint

# All generated files: the runtime's own from schema/, then those of the declarations.
generate:
	go generate ./runtime/...
	go generate ./...
	go -C examples generate ./...
	go -C examples/temporal generate ./...

# The golden files, generated packages and error cases both. Read the diff before you commit it.
golden:
	go generate ./golden/pipeline # before the list of its tools, which golden/tools generates from
	go test ./golden/tools -update
	go test ./golden -run TestGenerated -update
	go test ./golden -update
	go test ./golden/compat -update
	go test -tags long ./golden -run TestDocsDiffs -update

# What the generator writes today, kept as the output of a version: make freeze VERSION=v0.1.0
freeze:
	go test ./golden -run TestGenerated
	go test ./golden/compat -run 'TestSampleIsWhole|TestPromises'
	go test ./golden/compat/next/...
	go run ./golden/compat/freeze '$(VERSION)'

# The files of a release, from its tag, into dist: make release VERSION=v0.1.0. PLATFORMS may name some: linux/amd64.
release:
	bash .ci/release '$(VERSION)' dist $(PLATFORMS)

# A release and what its users do with it, in a clone with tags of its own. It leaves nothing behind.
rehearse:
	bash .ci/rehearse

# What has changed in the public packages since the last version. It fails if the next version may not break that.
apidiff:
	bash .ci/apidiff

# Which rules of the specification the tests cover, and by which: runs those that cover any, and prints
# the table. A test that fails covers nothing, and make fails with it. The file is a new one each time,
# so that no test result comes from the cache.
rules:
	@records=$$(mktemp) && trap 'rm -f "$$records"' EXIT && status=0 && \
	  covering=$$(grep -rl --include='*_test.go' --exclude-dir=testdata 'rules\.Covers(' . | xargs -n 1 dirname | sort -u) && \
	  { MCPTASK_RULES_OUT=$$records go test -tags long $$covering >&2 || status=$$?; } && \
	  go run ./schema/rules/table "$$records" && exit $$status

# Polls, lives, creations and reports on each store, beside an echo, the bare drivers and mcp-go. It takes about five
# minutes, and writes docs/performance.md. The machine should do nothing else.
bench:
	go run ./examples/compare -write docs/performance.md $(ARGS)

# All benchmarks of packages, without the tests.
benchmarks:
	go test -run '^$$' -bench '$(BENCH)' -benchmem work

# The program beside stringer, 21 times each: time, memory, and what comes after loading.
bench-generator:
	go test -run '^$$' -bench Generate -benchtime 21x ./cmd/internal/bench

# The server that init writes beside one on the official SDK alone: the binary, its build with an empty cache, and the
# time from the start to the first answer. It takes minutes.
weight:
	go test -tags long -run '^$$' -bench Weight -benchtime 1x -timeout 1h ./examples/internal/scaffold

# What it costs a server to make one of its tools a task: lines, modules, the release of Go and the binary, before and
# after. It writes the figures into the pages about the two SDKs, and takes minutes.
cost:
	go run ./examples/brownfield -write

# Every fuzz target, one after the other.
fuzz:
	FUZZTIME=$(FUZZTIME) bash .ci/run fuzz ./...

# Attacks on a server and a client, each a process of its own: ten times as big as in go test, and the mixed
# siege for as long as SIEGETIME says, under the race detector: make siege SIEGETIME=1h
SIEGETIME ?= 10m
siege:
	MCPTASK_SIEGE=full go test -tags long -count=1 -timeout 1h -skip TestSiege ./runtime/gosdk/internal/siege
	SIEGETIME=$(SIEGETIME) go test -tags long -race -count=1 -timeout 24h -run TestSiege -v ./runtime/gosdk/internal/siege

# Servers on each store are killed, stopped and cut off from their store, as often as KILLS says: make chaos KILLS=300
KILLS ?= 1000
chaos:
	MCPTASK_KILLS=$(KILLS) go test -tags long -count=1 -timeout 24h -run 'Kills|Harms' -v ./runtime/internal/chaos

# The picture of the MCP Inspector that the README shows. It needs Chromium and npm.
screenshot:
	npm ci --prefix examples/hosts --no-audit --no-fund --loglevel=error
	go test -tags long -count=1 ./examples/hosts -run TestInspectorPicture -picture '$(CURDIR)/docs/images/inspector.png'

# The pictures of the operator's page, in the README and in docs/console.md. They need Chromium.
console-picture:
	go test -tags long -count=1 ./examples/hosts -run TestConsolePictures -console-pictures '$(CURDIR)/docs/images'

# The moving picture of the demo that the README shows, from a recording in which you answer. It needs Chromium and npm.
moving-picture:
	go run ./examples/pipeline -brief -record docs/images/pipeline.cast
	npm ci --prefix examples/hosts --no-audit --no-fund --loglevel=error
	go test -tags long -count=1 ./examples/hosts -run TestDemoPicture -moving '$(CURDIR)/docs/images/pipeline.gif'

# Everything that has to pass before a change lands.
ci:
	bash .ci/run
