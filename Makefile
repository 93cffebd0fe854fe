# make does all that CI does, in every module. It begins with the test command that the README gives.
MODULES := . grpcx examples bench e2e
GO ?= go

.PHONY: all test lint race e2e tidy generate generated examples demo fuzz tools bench comparison mutate
all: test lint tidy generated race e2e examples

test:
	$(GO) test ./...

# Tools are pinned in a module of their own, so that no user of the library ever sees them.
tools: bin/golangci-lint
bin/golangci-lint: tools/go.mod tools/go.sum
	$(GO) -C tools build -o ../bin/ tool
	@touch $@

lint: tools
	@test -z "$$(bin/gofumpt -l $$(git ls-files '*.go'))" || { echo "not formatted (run bin/gofumpt -w .):"; bin/gofumpt -l $$(git ls-files '*.go'); exit 1; }
	@set -e; for m in $(MODULES); do echo "lint $$m"; (cd $$m && $(CURDIR)/bin/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done

tidy:
	@set -e; for m in $(MODULES) tools; do echo "tidy $$m"; $(GO) -C $$m mod tidy -diff; done

# What comes from the registry of telemetry, otelx/registry: constants, tables, the tables of docs/telemetry.md.
generate:
	$(GO) -C tools run ./gen

generated:
	$(GO) -C tools test ./...
	$(GO) -C tools run ./gen -check

race:
	@set -e; for m in $(filter-out e2e,$(MODULES)); do echo "race $$m"; $(GO) -C $$m test -race -shuffle=on ./...; done

# Telemetry against a real Collector and a real Prometheus, and the rules and queries of docs/operate. Needs prometheus and
# promtool (on Debian: apt-get install prometheus).
e2e:
	$(GO) -C e2e test -race -shuffle=on ./...

# Each example runs to its end and checks its own claims.
examples:
	$(GO) -C examples run ./outage -svg ''
	$(GO) -C examples run ./trace -svg ''
	$(GO) -C examples run ./amplification -svg ''
	$(GO) -C examples run ./grpc
	$(GO) -C examples run ./http -svg ''

# What the policies cost, beside other libraries: docs/benchmarks.md. It takes a few minutes, and wants a quiet machine.
bench:
	$(GO) -C bench run ./cost -write ../docs/benchmarks.md

# What goes wrong with them and with others on a bad day: docs/comparison.md. The tests of bench check that it is up to date.
comparison:
	$(GO) -C bench test ./badday -update

# Breaks the policies on purpose, line by line, and fails where no test notices. It takes ten minutes and more.
mutate:
	$(GO) -C bench run ./mutate

demo:
	$(GO) -C examples run ./outage

# A longer look for bad inputs than the seeds that every test run replays.
FUZZTIME ?= 30s
fuzz:
	@set -e; for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
		$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; done; done
