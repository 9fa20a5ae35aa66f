# make test is everything that must hold before a change is merged; .ci/run calls it.
# The tools of the checks are built into .tools on demand, from versions pinned here.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

GO       ?= go
TOOLS    := $(CURDIR)/.tools/bin
LINT_VER := v2.15.0
GOLANGCI ?= $(TOOLS)/golangci-lint-$(LINT_VER)

# TensorBoard itself reads what training writes; its Python lives in a folder of its own.
TB_VER := 2.20.0
TB     := $(CURDIR)/.tools/tensorboard

CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

# Benchmarks of the calls that must be fast; PKG=./env/sim narrows them down.
PKG   ?= ./...
COUNT ?= 1

.PHONY: build check format vet lint arch test unit race invariants tensorboard browser bench clean

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

test: check unit race invariants tensorboard browser

# Learning and the longest runs are left out under the race detector, which makes arithmetic ten times slower: they run here.
unit:
	$(GO) test -timeout 30m ./...

race:
	$(GO) test -race -timeout 30m ./...

# The books of the simulator are held against each other after every event.
invariants:
	$(GO) test -tags invariants -timeout 30m ./env/...

tensorboard: $(TB)/have-$(TB_VER)
	CLUSTERGYM_TENSORBOARD_PYTHON=$(TB)/bin/python $(GO) test -count=1 -run '^TestTensorBoardReadsRuns$$' ./experiments

# The page of gymctl sim --html is looked at by a browser.
browser:
	@chromium="$(CHROMIUM)"; \
	if [ -z "$$chromium" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		{ apt-get install -y -q chromium || { apt-get update -q && apt-get install -y -q chromium; }; } >/dev/null 2>&1 || true; \
		chromium="$$(command -v chromium || true)"; \
	fi; \
	if [ -z "$$chromium" ]; then \
		echo "make browser needs Chromium (Debian: apt-get install chromium), or make browser CHROMIUM=/path/to/it"; exit 1; \
	fi; \
	CLUSTERGYM_CHROMIUM="$$chromium" $(GO) test -count=1 -run '^TestBrowser' ./experiments/schedview

bench:
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKG)

$(TOOLS)/golangci-lint-$(LINT_VER):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VER)
	mv $(TOOLS)/golangci-lint $@

# Where Python has no venv (Debian keeps it in a package of its own), virtualenv makes the same.
$(TB)/have-$(TB_VER):
	@rm -rf $(TB) $(TB)-virtualenv
	@mkdir -p $(dir $(TB))
	@python3 -m venv $(TB) >/dev/null 2>&1 || { rm -rf $(TB); \
		python3 -m pip install -q --target $(TB)-virtualenv virtualenv && \
		PYTHONPATH=$(TB)-virtualenv python3 -m virtualenv -q $(TB); } || { rm -rf $(TB); \
		echo "make tensorboard needs python3 with venv (Debian: apt-get install python3-venv) or pip"; exit 1; }
	$(TB)/bin/python -m pip install -q --disable-pip-version-check tensorboard==$(TB_VER) 'setuptools<81'
	touch $@

clean:
	rm -f gymctl
