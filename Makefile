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

# A tracking server of MLflow takes what training sends; opt-in, as it installs some 700 MB.
MLFLOW_VER := 3.17.1
MLFLOW     := $(CURDIR)/.tools/mlflow-$(MLFLOW_VER)

# The Python package and its own tests.
PY_OLDEST := 1.2.3
PY      := $(CURDIR)/.tools/python-$(shell { cat python/tests/requirements.txt; echo $(PY_OLDEST); } | sha256sum | cut -c1-12)
PY_OWN  := setup.py backend src tests examples tests_packages tests_rl
PY_TEST := PYTHONPYCACHEPREFIX=$(PY)/pycache $(PY)/bin/python -m pytest -p no:cacheprovider

# The libraries that agents are trained with, PyTorch among them: some 6 GB, installed once for each set of pins; beside
# them the Gymnasium that CleanRL pins, which only the test of its calls uses.
RL_CLEANRL := 0.29.1
RL_PINS := python/tests_rl/requirements.txt python/tests_rl/constraints.txt
RL      := $(CURDIR)/.tools/rl-$(shell { cat $(RL_PINS); echo $(RL_CLEANRL); } | sha256sum | cut -c1-12)

# The library of CycloneDX, which has the published schemas in it.
SBOM_VER := 11.11.0
SBOM := $(CURDIR)/.tools/cyclonedx-$(SBOM_VER)

# The Kubernetes that the adapter is tested with, built from Go modules into a folder of its own: some 200 MB, a quarter of an hour.
KUBE_VER := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2 }' tools/kubernetes/go.mod)
KUBE     := $(CURDIR)/.tools/kubernetes-$(KUBE_VER)

# The Kueue whose queue is steered there, built likewise: 90 MB, six minutes more.
KUEUE_VER := $(shell awk '$$1 == "sigs.k8s.io/kueue" { print $$2 }' tools/kueue/go.mod)
KUEUE     := $(CURDIR)/.tools/kueue-$(KUEUE_VER)

# The documentation as a site; opt-in, as it installs some 60 MB.
SITE_VER := 9.8.2
SITE     := $(CURDIR)/.tools/site

CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

# Benchmarks of the calls that must be fast; PKG=./simulator/sim narrows them down.
PKG   ?= ./...
COUNT ?= 1

# All that is compiled is compiled with the flags of releases, so that no part of make test compiles again what another has compiled.
# The race detector alone wants C.
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath
export CGO_ENABLED := 0

# go test for everything: lint has said what vet would say, and while the tests of one package wait for a timeout another's run.
TEST = $(GO) test -vet=off -p $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PARTS := $(GO) run ./internal/parts

# Every run of the tests draws the same cases. make explore draws others, SEED=7 names them.
export RAPID_SEED ?= $(or $(CLUSTERGYM_TEST_SEED),1)
SEED := $(or $(SEED),$(shell od -An -N6 -tu8 /dev/urandom | tr -d ' '))
DRAWN = $(shell $(GO) list -f '{{range .TestImports}}{{if eq . "pgregory.net/rapid"}}{{$$.ImportPath}} {{end}}{{end}}{{range .XTestImports}}{{if eq . "pgregory.net/rapid"}}{{$$.ImportPath}} {{end}}{{end}}' ./...)
CHECKS ?= 1000

.PHONY: build size check format vet lint arch test computing waiting unit race alone invariants explore papers tensorboard mlflow browser python tutorial python-rl slurm kubernetes compare bench cross wheels release packages site clean

# As in releases: without symbols and debugging tables, which are a third of a plain binary.
LEAN := -ldflags "-s -w"

build:
	$(GO) build $(LEAN) -o gymctl ./cmd/gymctl

# What users download and copy to machines stays below this size.
MOST_BYTES := 57671680 # 55 MiB
size:
	@mkdir -p $(TOOLS) && $(GO) build $(LEAN) -o $(TOOLS)/gymctl ./cmd/gymctl
	@bytes=$$(wc -c < $(TOOLS)/gymctl); echo "gymctl: $$bytes bytes"; \
	if [ $$bytes -gt $(MOST_BYTES) ]; then \
		echo "expected at most $(MOST_BYTES): go tool nm -size -sort size of a build without -s shows what is large, git grep go:embed what is embedded"; exit 1; \
	fi

check: format vet lint arch

format:
	@out="$$(gofmt -l .)"; \
	if [ -n "$$out" ]; then echo "not formatted (run gofmt -w):"; echo "$$out"; exit 1; fi

# lint has all of go vet in it, but for what a build tag leaves out.
vet:
	$(GO) vet -tags invariants $(filter clustergym/env/% clustergym/simulator/%,$(shell $(PARTS) tag invariants))

lint: $(GOLANGCI)
	$(GOLANGCI) run --allow-parallel-runners ./...

arch:
	$(TEST) -count=1 ./internal/archtest

# Two lanes beside each other: one computes all the time, and the other mostly waits, for a browser, a Slurm's clock, pip or a server.
# The first is printed as it comes, the second part by part.
test: check cross size
	$(MAKE) -j2 -Onone computing waiting

computing:
	$(MAKE) -j1 unit race invariants papers

waiting:
	$(MAKE) -j1 -O tensorboard browser slurm python python-rl

unit:
	$(TEST) -timeout 30m ./...

# The packages in whose tests two goroutines can meet. The detector makes arithmetic ten times slower, so runs in one goroutine are
# left out here: long ones (internal/raced), and nine tenths of the cases that rapid draws.
race:
	RAPID_CHECKS=10 CGO_ENABLED=1 $(TEST) -race -timeout 30m $(shell $(PARTS) race)

# Tests that say that they run in one goroutine (raced.Alone), which race therefore leaves out. Not part of make test: it is for whoever
# writes one.
alone:
	files=$$(git grep -l 'raced.Alone(t)' -- '*_test.go' ':!internal/raced'); \
	tests=$$(awk '/^func Test/ { split($$2, name, "("); test = name[1] } /raced.Alone\(t\)/ { print test }' $$files | paste -sd'|'); \
	CLUSTERGYM_ALONE=1 $(TEST) -count=1 -run "^($$tests)\$$" $$(dirname $$files | sort -u | sed 's|^|./|')

# The books of the simulator are held against each other after every event.
invariants:
	$(TEST) -tags invariants -timeout 30m $(filter clustergym/env/% clustergym/simulator/%,$(shell $(PARTS) tag invariants))

# Property tests on cases that no run has drawn before, CHECKS for each property: hours. It prints the seed first.
explore:
	@echo "RAPID_SEED=$(SEED)"
	RAPID_SEED=$(SEED) RAPID_CHECKS=$(CHECKS) $(TEST) -count=1 -timeout 24h $(sort $(DRAWN))

# Every experiment in its quick form, beside the figures that are written down. With DATA=DIR those that have figures of
# recorded workloads, with the workloads in DIR (an absolute path).
papers:
	CLUSTERGYM_PAPERS=1 CLUSTERGYM_PAPERS_DATA=$(DATA) $(TEST) -count=1 -timeout 90m -run '^TestQuickForms' ./experiments/papers

tensorboard: $(TB)/have-$(TB_VER)
	CLUSTERGYM_TENSORBOARD_PYTHON=$(TB)/bin/python $(TEST) -count=1 -run '^TestTensorBoard' ./lab/run

# Not part of make test: the sender's own tests have a small server of ours.
mlflow: $(MLFLOW)/have
	CLUSTERGYM_MLFLOW_PYTHON=$(MLFLOW)/bin/python $(TEST) -count=1 -run '^TestMLflow' ./lab/mlflow

# The page of gymctl sim --html, the live pages of gymctl ui and the page of an experiment are looked at by a browser.
browser:
	@chromium="$(CHROMIUM)"; \
	if [ -z "$$chromium" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		{ apt-get install -y -q chromium || { apt-get update -q && apt-get install -y -q chromium; }; } >/dev/null 2>&1 || true; \
		chromium="$$(command -v chromium || true)"; \
	fi; \
	if [ -z "$$chromium" ]; then \
		echo "make browser needs Chromium (Debian: apt-get install chromium), or make browser CHROMIUM=/path/to/it"; exit 1; \
	fi; \
	CLUSTERGYM_CHROMIUM="$$chromium" $(TEST) -count=1 -run '^TestBrowser' ./lab/htmlpage ./ops/assess ./pages ./experiments/study

# Workers and ranks started by a Slurm of its own and over ssh, all on this machine (docs/guides/many-machines.md); what watches and steers a
# Slurm, and its history (docs/guides/real-clusters.md). Without slurmdbd and MariaDB, which take 20 s to install, the history is left out.
slurm:
	@have() { command -v slurmctld && command -v slurmd && command -v munged && command -v srun && test -x /usr/sbin/sshd; }; \
	export RUNLEVEL=1; install="apt-get install -y -q --no-install-recommends slurmctld slurmd slurm-client munge openssh-server"; \
	books="slurmdbd mariadb-server-core mariadb-client-core"; \
	if ! have >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		{ $$install || { apt-get update -q && $$install; }; } >/dev/null 2>&1 || true; \
	fi; \
	if ! { command -v slurmdbd && command -v mariadbd; } >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		$$install $$books >/dev/null 2>&1 || true; \
	fi; \
	if ! have >/dev/null; then echo "make slurm needs Slurm, munge and sshd (Debian: $$install)"; exit 1; fi
	CLUSTERGYM_SLURM=1 $(TEST) -count=1 -v -parallel 10 -run '^TestWorkersUnderSlurm$$|^TestRanksUnderSlurm$$|^TestWorkersOverSSH$$|^TestHistoryOfSlurm$$|^TestReal' ./cmd/gymctl/internal/operate ./live/slurm

# The adapter on a Kubernetes of its own: API server, scheduler, etcd and Kueue on the loopback address, without kubelets. Not part of
# make test, because of its build.
kubernetes: $(KUBE)/have $(KUEUE)/have
	CLUSTERGYM_KUBERNETES=$(KUBE) CLUSTERGYM_KUEUE=$(KUEUE) $(TEST) -count=1 -v -timeout 30m -parallel 10 -run '^TestKubernetes' ./live/kube ./cmd/gymctl/internal/operate

# The wheel that python and tutorial test, with the gymctl inside it, and what it installs.
define make-wheel
	@rm -rf $(PY)/wheel $(PY)/build && mkdir -p $(PY)/wheel $(PY)/build
	printf '[build]\nbuild_base=../.tools/$(notdir $(PY))/build\n[egg_info]\negg_base=../.tools/$(notdir $(PY))/build\n' > $(PY)/build.cfg
	DIST_EXTRA_CONFIG=$(PY)/build.cfg $(PY)/bin/python -m pip wheel -q --disable-pip-version-check --no-deps \
		--no-build-isolation -w $(PY)/wheel ./python
	$(PY)/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-compile --target $(PY)/wheel/here $(PY)/wheel/*.whl
endef

# The tutorial, followed by a test with the wheel; UPDATE=1 writes what its commands print into the page.
FOLLOW = CLUSTERGYM_TUTORIAL_PYTHON=$(PY)/bin/python CLUSTERGYM_TUTORIAL_WHEEL=$$(echo $(PY)/wheel/*.whl) \
	$(TEST) -count=1 -timeout 20m -run '^TestTutorialWorks$$|^TestReadmePython$$' ./internal/docstest

tutorial: $(PY)/have
	$(make-wheel)
	$(FOLLOW) $(if $(UPDATE),-update)

# The Python package: its code's checkers, then its tests on the wheel that is built here, with the gymctl inside it;
# Gymnasium's checks once more with the oldest Gymnasium that is supported.
python: $(PY)/have
	cd python && $(PY)/bin/ruff check --no-cache $(PY_OWN) && $(PY)/bin/ruff format --no-cache --check $(PY_OWN)
	cd python && $(PY)/bin/mypy --cache-dir $(PY)/mypy
	$(make-wheel)
	rm -rf $(PY)/onnx
	CLUSTERGYM_ONNX_CASES=$(PY)/onnx $(TEST) -count=1 -run '^TestNetworksOfEveryKind$$|^TestFactorsBesideNumbers$$|^TestExportsOfPresetsActLikeThem$$' ./nets/onnx/export ./lab/arena
	cd python && CLUSTERGYM_ONNX_CASES=$(PY)/onnx PYTHONPATH=$(PY)/wheel/here $(PY_TEST) tests
	cd python && PYTHONPATH=$(PY)/wheel/here:$(PY)/oldest $(PY_TEST) tests/test_envs.py tests/test_vector.py
	$(FOLLOW)
	cd experiments/learning && $(PY)/bin/ruff check --no-cache . && $(PY)/bin/ruff format --no-cache --check .
	cd experiments/learning && $(PY)/bin/mypy --cache-dir $(PY)/mypy-learning && $(PY_TEST)

# Adapters, examples and learning, with the libraries themselves; last, a glance at the comparison of experiments/learning.
python-rl: $(RL)/have
	$(GO) build $(LEAN) -o $(TOOLS)/gymctl ./cmd/gymctl
	cd python && CLUSTERGYM_GYMCTL=$(TOOLS)/gymctl PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 \
		$(RL)/bin/python -m pytest -q -p no:cacheprovider -c tests_rl/pytest.ini tests_rl
	rm -rf $(RL)/compare
	PYTHONDONTWRITEBYTECODE=1 $(RL)/bin/python experiments/learning/compare.py --quick --only cartpole-ppo \
		--gymctl $(TOOLS)/gymctl --out $(RL)/compare

# The platforms of a release: all of it compiles, and vet looks at what is not the same there, tests included. macOS on x86-64 is left
# to make packages: each of its packages is one of the others' (a test of internal/parts says so).
cross:
	@for t in $$($(GO) run ./cmd/release targets | grep -v darwin/amd64); do \
		echo "$$t"; vet=$$($(PARTS) vet $$t); ( \
			export GOOS=$${t%/*} GOARCH=$${t#*/}; \
			$(GO) build ./...; \
			if [ $$t != $(shell $(GO) env GOHOSTOS)/$(shell $(GO) env GOHOSTARCH) ]; then $(GO) vet $$vet; fi \
		); \
	done

# What people without Go install: wheels for every platform with gymctl inside; with archives, bills of materials, and what a
# container is made of, the whole release. Equal commits give equal bytes, so the Go is an exact one. DIRTY=1 builds a checkout
# with changes. Nothing is published.
RELEASE_GO := go1.26.8
DIST ?= dist
# $(1) is more flags.
define make-release
@rm -rf $(PY)/base $(PY)/base-build && mkdir -p $(PY)/base $(PY)/base-build
@printf '[build]\nbuild_base=$(PY)/base-build\n[egg_info]\negg_base=$(PY)/base-build\n' > $(PY)/base.cfg
GYMCTL_BINARY=none DIST_EXTRA_CONFIG=$(PY)/base.cfg $(PY)/bin/python -m pip wheel -q --disable-pip-version-check --no-deps \
	--no-build-isolation -w $(PY)/base ./python
GOTOOLCHAIN=$(RELEASE_GO) $(GO) run ./cmd/release build --base $(PY)/base/*.whl --out $(DIST) $(if $(DIRTY),--dirty) $(1)
endef

wheels: $(PY)/have
	$(call make-release,--only wheels)

release: $(PY)/have
	$(call make-release)

# A release as one gets it: checksums, contents, formats; each gymctl started, under qemu or wine if need be; the bills of
# materials against the published schema; the wheel for this machine in an environment of its own, without Go.
packages: DIST := $(CURDIR)/.tools/dist
packages: DIRTY := 1
packages: $(PY)/have $(SBOM)/have
	@rm -rf $(DIST)
	$(call make-release)
	$(GO) run ./cmd/release check $(DIST)
	cd python && CLUSTERGYM_DIST=$(DIST) CLUSTERGYM_SBOM=$(SBOM) $(PY_TEST) tests_packages

# Our agents and kernels beside those of well-known libraries: hours, and some 6 GB. ARGS=--quick is a look in minutes.
compare:
	experiments/learning/run.sh $(ARGS)

# .tools/site/html, with a search, for any web server or python3 -m http.server. The pages are copied with their folders, because they
# link to pages outside docs too.
site: $(SITE)/have-$(SITE_VER)
	rm -rf $(SITE)/pages $(SITE)/html && mkdir -p $(SITE)/pages
	git ls-files -z --cached --others --exclude-standard '*.md' docs/images docs/grafana | grep -zv testdata/ | tar -cf - --null -T - | tar -xf - -C $(SITE)/pages
	NO_MKDOCS_2_WARNING=1 $(SITE)/venv/bin/python -m mkdocs build -q -f tools/site/mkdocs.yml

bench:
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKG)

$(TOOLS)/golangci-lint-$(LINT_VER):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VER)
	mv $(TOOLS)/golangci-lint $@

# Where Python has no venv (Debian keeps it in a package of its own), virtualenv makes the same. $(1) is the folder.
define new-venv
@rm -rf $(1) $(1)-virtualenv
@mkdir -p $(dir $(1))
@python3 -m venv $(1) >/dev/null 2>&1 || { rm -rf $(1); \
	python3 -m pip install -q --target $(1)-virtualenv virtualenv && \
	PYTHONPATH=$(1)-virtualenv python3 -m virtualenv -q $(1); } || { rm -rf $(1); \
	echo "$@ needs python3 with venv (Debian: apt-get install python3-venv) or pip"; exit 1; }
endef

$(SITE)/have-$(SITE_VER):
	$(call new-venv,$(SITE)/venv)
	$(SITE)/venv/bin/python -m pip install -q --disable-pip-version-check --no-compile mkdocs-material==$(SITE_VER)
	touch $@

$(MLFLOW)/have:
	$(call new-venv,$(MLFLOW))
	$(MLFLOW)/bin/python -m pip install -q --disable-pip-version-check --no-compile mlflow==$(MLFLOW_VER)
	touch $@

$(TB)/have-$(TB_VER):
	$(call new-venv,$(TB))
	$(TB)/bin/python -m pip install -q --disable-pip-version-check tensorboard==$(TB_VER) 'setuptools<81'
	touch $@

# The server says which version it is from these variables. One package at a time, in the background: it takes much memory.
KUBE_SAYS := -X k8s.io/component-base/version.gitVersion=$(KUBE_VER) \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBE_VER)))
$(KUBE)/have: tools/kubernetes/go.mod tools/kubernetes/go.sum tools/kubernetes/etcd/main.go
	@rm -rf $(filter-out $(KUBE),$(wildcard $(CURDIR)/.tools/kubernetes-*)) && mkdir -p $(KUBE)
	cd tools/kubernetes && for p in clustergym/tools/kubernetes/etcd k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-scheduler; do \
		GOFLAGS="$$($(GO) env GOFLAGS) -p=1" CGO_ENABLED=0 nice -n 19 $(GO) build -trimpath -ldflags "-s -w $(KUBE_SAYS)" -o $(KUBE)/ $$p; \
	done
	touch $@

# Kueue, and beside it the definitions of its kinds and webhooks, which are part of the same module.
$(KUEUE)/have: tools/kueue/go.mod tools/kueue/go.sum
	@rm -rf $(filter-out $(KUEUE),$(wildcard $(CURDIR)/.tools/kueue-*)) && mkdir -p $(KUEUE)/crds
	cd tools/kueue && GOFLAGS="$$($(GO) env GOFLAGS) -p=1" CGO_ENABLED=0 nice -n 19 $(GO) build -trimpath \
		-ldflags "-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion=$(KUEUE_VER)" -o $(KUEUE)/ sigs.k8s.io/kueue/cmd/kueue
	cd tools/kueue && config="$$($(GO) list -m -f '{{.Dir}}' sigs.k8s.io/kueue)/config/components" && \
		install -m 644 "$$config"/crd/bases/*.yaml $(KUEUE)/crds && install -m 644 "$$config"/webhook/manifests.yaml $(KUEUE)/webhooks.yaml
	touch $@

# What other pins left behind goes first.
$(PY)/have: python/tests/requirements.txt
	@rm -rf $(filter-out $(PY),$(wildcard $(CURDIR)/.tools/python-*))
	$(call new-venv,$(PY))
	$(PY)/bin/python -m pip install -q --disable-pip-version-check -r python/tests/requirements.txt
	@$(PY)/bin/python -c 'import lightgbm' || { echo "$@ needs the library libgomp, which gcc has (Debian: apt-get install libgomp1)"; exit 1; }
	$(PY)/bin/python -m pip install -q --disable-pip-version-check --no-deps --target $(PY)/oldest gymnasium==$(PY_OLDEST)
	touch $@

$(SBOM)/have: $(PY)/have
	@rm -rf $(SBOM)
	$(PY)/bin/python -m pip install -q --disable-pip-version-check --target $(SBOM) 'cyclonedx-python-lib[json-validation]==$(SBOM_VER)'
	touch $@

$(RL)/have: $(RL_PINS)
	@rm -rf $(filter-out $(RL),$(wildcard $(CURDIR)/.tools/rl-*))
	$(call new-venv,$(RL))
	$(RL)/bin/python -m pip install -q --disable-pip-version-check \
		-r python/tests_rl/requirements.txt -c python/tests_rl/constraints.txt
	$(RL)/bin/python -m pip install -q --disable-pip-version-check --no-deps --target $(RL)/gymnasium-0.29 gymnasium==$(RL_CLEANRL)
	touch $@

clean:
	rm -f gymctl
