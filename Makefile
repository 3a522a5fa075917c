# Copyright 2026 The prober_exporter Authors
# SPDX-License-Identifier: Apache-2.0

GO            ?= go
GOLANGCI_LINT  = bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOLANGCI_LINT_VERSION = v2.15.0
VALE           = bin/vale-$(VALE_VERSION)
VALE_VERSION   = v3.21.0
ACTIONLINT_VERSION = v1.7.12
FUZZTIME      ?= 30s
# Those with code of ours.
MODULES        = . mixin e2e/apiserver e2e/kubernetes e2e/page

# .promu.yml says how a release is built, and for what: every platform must compile; tests
# run on linux/amd64.
BUILDFLAGS := $(shell packaging/promu.sh flags)
LDFLAGS    := $(shell packaging/promu.sh ldflags)
PLATFORMS  ?= $(shell packaging/promu.sh platforms)

.PHONY: all build test test-frozen lint lint-go lint-yaml lint-prose workflows cross check fuzz bench bench-parts dist reproducible mixin mixin-test \
	e2e-prometheus e2e-page e2e-docker e2e-compose e2e-apiserver e2e-kubernetes e2e-act kubernetes-parts e2e-systemd clean

all: check build ## What a pull request must pass.

build: ## The static binary, as releases and the image have it.
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -ldflags '$(LDFLAGS)' -o prober_exporter .

dist: ## Release archives for PLATFORMS and their checksums, in dist/.
	packaging/dist.sh $(PLATFORMS)

reproducible: ## Two clones in two places with two build caches give the same archives.
	packaging/reproducible.sh

test: ## All tests, as CI runs them.
	$(GO) test -race -shuffle=on -timeout 10m ./...

test-frozen: ## An agent is frozen 200 times, and starved for 200 s, beside healthy and hanging targets. Linux, 20 minutes.
	PROBER_TEST_REPEAT=200 $(GO) test -count 1 -timeout 60m -v -run '^Test(Frozen|Starved)$$' ./agent

lint: lint-go lint-yaml lint-prose ## All that has rules: code, YAML and prose.

lint-go: $(GOLANGCI_LINT) ## The rules of .golangci.yml, for Linux. The linter is built into bin/.
	set -e; for module in $(MODULES); do (cd $$module && GOOS=linux $(CURDIR)/$(GOLANGCI_LINT) run ./...); done

lint-yaml: ## The rules of .yamllint. Debian's yamllint is installed if there is none.
	@bash -c '. e2e/needs.sh && needs yamllint=yamllint' $@
	yamllint --strict .

lint-prose: $(VALE) ## The spelling of Markdown, by .vale.ini. The linter is built into bin/.
	git ls-files -z --cached --others --exclude-standard '*.md' | xargs -0 $(VALE)

workflows: ## What GitHub runs is checked before it does.
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION) -color

$(GOLANGCI_LINT):
	mkdir -p bin
	GOBIN=$(CURDIR)/bin CGO_ENABLED=0 $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv bin/golangci-lint $@

$(VALE):
	mkdir -p bin
	GOBIN=$(CURDIR)/bin CGO_ENABLED=1 $(GO) install github.com/vale-cli/vale/v3/cmd/vale@$(VALE_VERSION)
	mv bin/vale $@

cross: ## The systems that nobody tests must compile.
	GOOS=windows $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...

check: lint cross test ## All of it but the binary.

fuzz: ## Each fuzz target for FUZZTIME.
	set -e; for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
			$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; \
		done; \
	done

bench: build ## What the agent costs beside the usual way and the floor. Linux. BENCHFLAGS=-quick for a look.
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -ldflags '$(LDFLAGS)' -o bin/ ./bench ./bench/libraries
	bin/bench -libraries bin/libraries $(BENCHFLAGS)

bench-parts: ## Gate, actions, collector, each by itself.
	$(GO) test -run '^$$' -bench . -benchmem ./...

e2e-docker: ## The docker source against a real Docker Engine. Needs root.
	e2e/docker.sh

e2e-compose: bin/compose/docker-compose ## The compose example against a real Docker Engine. Needs root.
	COMPOSE=Compose e2e/docker.sh

bin/compose/docker-compose: e2e/compose/go.mod
	cd e2e/compose && CGO_ENABLED=0 nice $(GO) build -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ github.com/docker/compose/v2/cmd
	touch $@

e2e-systemd: ## The units of examples/systemd under a real systemd, in a virtual machine. Needs root.
	e2e/systemd.sh

e2e-page: ## The status page in a real Chromium. The screenshots are in e2e/page/artifacts.
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -ldflags '$(LDFLAGS)' -o bin/e2e-page/prober_exporter .
	e2e/page.sh

# A real etcd and kube-apiserver, built from modules of their own: the first time takes
# minutes, 2 GB of memory and 3 GB of disk.
APISERVER_BIN = $(CURDIR)/bin/apiserver

e2e-apiserver: ## The kubernetes source, and rewritten manifests, against a real API server. Needs root, or user namespaces for all.
	@[ "$$(uname -s)" = Linux ] || { echo "e2e-apiserver cannot run: it needs Linux" >&2; exit 1; }
	$(MAKE) $(APISERVER_BIN)/kube-apiserver $(APISERVER_BIN)/etcd
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -ldflags '$(LDFLAGS)' -o $(APISERVER_BIN)/prober_exporter .
	cd e2e/apiserver && $(GO) test -race -shuffle=on -count=1 -timeout 10m .

# With -run a part of it: make e2e-act ACTFLAGS='-run TestActAway'
ACT_PODS ?= 20
ACTFLAGS ?= -run ^TestAct

e2e-kubernetes: kubernetes-parts ## The pods of examples/kubernetes on a real kubelet. Needs root on Linux.
	e2e/kubernetes.sh

e2e-act: kubernetes-parts ## From a fault to the restart, in figures: ACT_PODS fresh pods of each kind. Needs root on Linux, 40 minutes.
	PROBER_ACT_PODS=$(ACT_PODS) e2e/kubernetes.sh -timeout 2h $(ACTFLAGS)

kubernetes-parts:
	@[ "$$(uname -s)" = Linux ] || { echo "$(MAKECMDGOALS) cannot run: it needs Linux" >&2; exit 1; }
	$(MAKE) $(APISERVER_BIN)/kube-apiserver $(APISERVER_BIN)/kubelet $(APISERVER_BIN)/etcd

$(APISERVER_BIN)/kube-apiserver $(APISERVER_BIN)/kubelet: e2e/apiserver/k8s/go.mod
	cd e2e/apiserver/k8s && V=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes) && CGO_ENABLED=0 nice $(GO) build -trimpath \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$V" -o $@ k8s.io/kubernetes/cmd/$(@F)
	touch $@

$(APISERVER_BIN)/etcd: e2e/apiserver/k8s/go.mod
	cd e2e/apiserver/k8s && CGO_ENABLED=0 nice $(GO) build -trimpath -ldflags '-s -w' -o $@ go.etcd.io/etcd/server/v3
	touch $@

e2e-prometheus: ## The mixin and the examples in a real Prometheus and Alertmanager, with a real agent.
	e2e/prometheus.sh

mixin: ## Renders alerts, rules and dashboard.
	cd mixin && $(GO) run .

mixin-test: ## What is rendered is current, and does what it should. Needs promtool.
	cd mixin && $(GO) test -count=1 ./...

clean: ## All that make has made.
	rm -rf bin dist prober_exporter e2e/page/artifacts
