# make test is everything that must hold before a change is merged; .ci/run calls it.
# The tools of the checks are built into .tools on demand, from versions pinned here.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

GO       ?= go
TOOLS    := $(CURDIR)/.tools/bin
LINT_VER := v2.15.0
GOLANGCI ?= $(TOOLS)/golangci-lint-$(LINT_VER)

# Benchmarks of the calls that must be fast; PKG=./env/sim narrows them down.
PKG   ?= ./...
COUNT ?= 1

.PHONY: build check format vet lint arch test race invariants bench clean

build:
	$(GO) build -trimpath -o gymctl ./cmd/gymctl

check: format vet lint arch

format:
	@out="$$(gofmt -l .)"; \
	if [ -n "$$out" ]; then echo "not formatted (run gofmt -w):"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...
	$(GO) vet -tags invariants ./env/...

lint: $(GOLANGCI)
	$(GOLANGCI) run ./...

arch:
	$(GO) test -count=1 ./internal/archtest

test: check race invariants

race:
	$(GO) test -race -timeout 30m ./...

# The books of the simulator are held against each other after every event.
invariants:
	$(GO) test -tags invariants -timeout 30m ./env/...

bench:
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKG)

$(TOOLS)/golangci-lint-$(LINT_VER):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VER)
	mv $(TOOLS)/golangci-lint $@

clean:
	rm -f gymctl
