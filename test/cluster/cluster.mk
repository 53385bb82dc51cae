# A real Kubernetes cluster on this machine; see docs/guides/local-cluster.md. Included by the Makefile.

C9S_CLUSTER_BIN := $(CURDIR)/bin/c9s-cluster
C9S_CLUSTER := $(C9S_CLUSTER_BIN) --name $(or $(CLUSTER_NAME),c9s)

.PHONY: $(C9S_CLUSTER_BIN)
$(C9S_CLUSTER_BIN):
	@mkdir -p $(@D)
	@$(GO) build -C test/cluster -trimpath -o $@ ./cmd/c9s-cluster

.PHONY: cluster
cluster: $(C9S_CLUSTER_BIN) ## Start a Kubernetes cluster here (root; CLUSTER_FLAGS="--workers 3 --ipv6 ...")
	@$(C9S_CLUSTER) up $(CLUSTER_FLAGS)

.PHONY: cluster-down
cluster-down: $(C9S_CLUSTER_BIN) ## Remove that cluster; the host is as before
	@$(C9S_CLUSTER) down

.PHONY: cluster-kubeconfig
cluster-kubeconfig: $(C9S_CLUSTER_BIN) ## Print the path of its kubeconfig
	@$(C9S_CLUSTER) kubeconfig

.PHONY: e2e
e2e: ## Run the end-to-end tests on a cluster of their own (root; E2E_FLAGS=-short: the quick half)
	@for module in test/cluster test/e2e; do $(GO) vet -C $$module ./... || exit 1; done
	@cd test/cluster && $(GO) test ./...
	@cd test/e2e && C9S_CLUSTER=$(or $(CLUSTER_NAME),e2e) $(GO) test -p 1 -count=1 -timeout 80m $(E2E_FLAGS) ./...

.PHONY: e2e-clock
e2e-clock: ## A worker's clock ten minutes off; builds the kubelet and containerd a second time (root)
	@cd test/e2e && C9S_CLOCK_OFF=1 C9S_CLUSTER=$(or $(CLUSTER_NAME),e2e) $(GO) test -count=1 -timeout 80m -v -run '^TestClockOff$$' ./lab

.PHONY: e2e-flux
e2e-flux: ## Flux's controllers keep a lab as a Git repository has it; builds them, about 10 minutes the first time (root)
	@cd test/e2e && C9S_FLUX=1 C9S_CLUSTER=$(or $(CLUSTER_NAME),e2e) $(GO) test -count=1 -timeout 80m -v -run '^TestFlux$$' ./lab

.PHONY: cluster-soak
cluster-soak: ## Cluster up, 30 Pods, down, 20 times over: nothing may be left (root)
	@cd test/e2e && C9S_SOAK=$(or $(CYCLES),20) $(GO) test -count=1 -timeout 80m -v -run '^TestSoak$$' ./soak
