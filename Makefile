# c9s. `make help` lists the tasks.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/c9s-lab/c9s/internal/cli.Version=$(VERSION)
export CGO_ENABLED ?= 0

# The race detector needs a C compiler; without one the tests run without it.
CC_FOUND := $(shell command -v $${CC:-gcc} 2>/dev/null)
RACE := $(if $(CC_FOUND),-race,)
RACE_ENV := $(if $(CC_FOUND),CGO_ENABLED=1,)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the tasks
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# planner/ needs containerlab's module, which not every module proxy serves. Its
# checksum is not in go.sum everywhere, hence -mod=mod.
PLANNER_FLAGS ?= -mod=mod
planner-resolves = (cd planner && $(GO) list $(PLANNER_FLAGS) -deps ./... >/dev/null 2>&1)

.PHONY: build
build: ## Build bin/c9s, and bin/c9s-planner (containerlab's kind hooks) where its module resolves
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/c9s ./cmd/c9s
	$(GO) run ./internal/licenses/cmd -o bin/LICENSES ./cmd/c9s
	@if $(planner-resolves); then \
		echo "building bin/c9s-planner, by which c9s plans with containerlab's kind hooks"; \
		cd planner && $(GO) build $(PLANNER_FLAGS) -trimpath -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/c9s-planner && \
		cd .. && GOFLAGS=$(PLANNER_FLAGS) $(GO) run ./internal/licenses/cmd -C planner -o bin/LICENSES-planner ./cmd/c9s-planner; \
	else \
		echo "no bin/c9s-planner: containerlab's module does not resolve here; c9s plans with its catalogue"; \
	fi

.PHONY: plain
plain: ## Build bin/c9s without the hooks, in any case
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/c9s ./cmd/c9s
	$(GO) run ./internal/licenses/cmd -o bin/LICENSES ./cmd/c9s

.PHONY: demo
demo: demo-render ## Render the demo lab, then run it: here in a cluster of its own, or with CLUSTER=kind, k3s or current in that
	@$(MAKE) --no-print-directory plain
	@PATH="$(CURDIR)/bin:$$PATH" MAKE="$(MAKE)" sh testdata/demo/run.sh $(or $(CLUSTER),here) $(IMAGE)

# What talks to a cluster is most of what there is to compile: without it the lab can
# be seen while the rest is still to be built.
.PHONY: demo-render
demo-render: ## The first half of the demo: needs no cluster
	@mkdir -p bin/render-only
	$(GO) build -tags nocluster -trimpath -ldflags '$(LDFLAGS)' -o bin/render-only/ ./cmd/c9s
	@PATH="$(CURDIR)/bin/render-only:$$PATH" sh testdata/demo/demo.sh demo

.PHONY: test
test: lint ## Run the linters and all tests (what CI runs)
	@test -n "$(RACE)" || echo "no C compiler (apt-get install gcc): the race detector is off"
	$(RACE_ENV) $(GO) test $(RACE) -timeout 20m -cover ./...

# One package after the other: two of them start devices' programs, and one looks at
# all that run on the machine.
.PHONY: test-planner
test-planner: ## Test planner/ where containerlab's module resolves
	@if $(planner-resolves); then \
		cd planner && $(GO) vet $(PLANNER_FLAGS) ./... && $(GO) test $(PLANNER_FLAGS) -p 1 -timeout 20m -cover ./...; \
	else \
		echo "planner/ is left out: containerlab's module does not resolve here"; \
	fi

.PHONY: test-browser
test-browser: ## Look at the page of c9s graph in Chromium (apt-get install chromium-headless-shell)
	cd test/browser && $(GO) vet ./... && $(GO) test -count=1 -timeout 10m ./...

.PHONY: conform
conform: build ## Compare the built-in planner with containerlab's hooks, kind by kind
	@test -x bin/c9s-planner || { echo "bin/c9s-planner could not be built: containerlab's module does not resolve here"; exit 1; }
	bin/c9s-planner conform

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@bad=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$bad" || { echo "not gofmt-ed:"; echo "$$bad"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags nocluster ./cmd/c9s
	$(GO) tool staticcheck ./...

.PHONY: cross
cross: ## Build for every platform that is supported
	@for os in linux darwin; do for arch in amd64 arm64; do \
		echo "$$os/$$arch"; GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -o /dev/null ./cmd/c9s || exit 1; \
	done; done

.PHONY: bench
bench: ## Measure rendering (1,000 and 10,000 nodes), planning and the YAML writer
	$(GO) test -run '^$$' -bench . -benchmem ./internal/cli ./pkg/plan ./pkg/render

ORACLE ?= 10m
EVENTS ?= 30m
.PHONY: soak-status
soak-status: ## Compare the status with the kernel for ORACLE (root); random events on five labs for EVENTS (a cluster)
	C9S_STATUS_ORACLE=$(ORACLE) $(GO) test -count=1 -run '^TestStatusAgainstTheKernel$$' -v -timeout 2h ./sidecar/podnet
	cd test/e2e && C9S_EVENTS=$(EVENTS) $(GO) test -count=1 -run '^TestRandomEvents$$' -v -timeout 3h ./lab

.PHONY: bench-planner
bench-planner: ## Compare the hooks with the catalogue: large labs, public labs, each kind
	@if $(planner-resolves); then \
		cd planner && $(GO) test $(PLANNER_FLAGS) -run '^$$' -bench . -benchtime 5x -timeout 60m ./internal/conform; \
	else \
		echo "containerlab's module does not resolve here"; exit 1; \
	fi

.PHONY: bench-capture
bench-capture: ## Measure what a capture costs the link that it captures (root)
	$(GO) test -run '^$$' -bench '^(BenchmarkPrice|BenchmarkSmallFrames)$$' -benchtime 1x -timeout 30m ./sidecar/capture

.PHONY: bench-wire
bench-wire: ## Measure the wire's datapaths beside veth and kernel VXLAN (root)
	$(GO) test -run '^$$' -bench '^BenchmarkWire$$' -benchtime 1x -timeout 30m ./pkg/wire

.PHONY: soak-wire
SOAK ?= 7200
soak-wire: ## Change, move, restart and kill Pods under traffic for SOAK seconds (root)
	WIRE_SOAK=$(SOAK) $(GO) test -count=1 -run '^TestSoak$$' -v -timeout $$(( $(SOAK) + 600 ))s ./pkg/wire

.PHONY: soak-moves
MOVES ?= 1800
soak-moves: ## Move a Pod between workers and kill it there, under traffic, for MOVES seconds (root)
	WIRE_MOVES=$(MOVES) $(GO) test -count=1 -run '^TestLocalMoves$$' -v -timeout $$(( $(MOVES) + 600 ))s ./pkg/wire

.PHONY: fuzz
FUZZTIME ?= 60s
fuzz: ## Run every fuzz target for FUZZTIME (60s each)
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$pkg || exit 1; \
		done; \
	done

.PHONY: generate
generate: ## Rewrite generated docs and goldens
	$(GO) test ./... -update

.PHONY: clean
clean: ## Remove what the other tasks made
	rm -rf bin demo

include test/cluster/cluster.mk
