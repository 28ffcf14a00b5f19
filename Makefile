# What CI does is in .ci/run; these are the parts that one wants by hand.
.PHONY: test race lint generate golden bench fuzz ci

# How long each fuzz target runs, and which benchmarks: make fuzz FUZZTIME=5m, make bench BENCH=Get
FUZZTIME ?= 30s
BENCH ?= .

# All tests. Those that miss a program (node, curl) say so and are skipped.
test:
	go test ./...

# All tests under the race detector, as CI runs them.
race:
	go test -race ./...

# The linter, in the version that CI has.
lint:
	bash .ci/run lint

# All generated files: the runtime's own from schema/, then those of the declarations.
generate:
	go generate ./runtime/...
	go generate ./...

# The golden files, generated packages and error cases both. Read the diff before you commit it.
golden:
	go test ./golden -update

# All benchmarks, without the tests.
bench:
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

# Every fuzz target, one after the other.
fuzz:
	@set -e; for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "== $$package $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

# Everything that has to pass before a change lands.
ci:
	bash .ci/run
