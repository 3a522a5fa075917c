# Copyright 2026 The prober_exporter Authors
# Licensed under the Apache License, Version 2.0; see LICENSE.

GO            ?= go
GOLANGCI_LINT  = bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOLANGCI_LINT_VERSION = v2.15.0
FUZZTIME      ?= 30s

VERSION  := $(shell cat VERSION)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
BRANCH   := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null)
LDFLAGS  := -s -w \
	-X github.com/prometheus/common/version.Version=$(VERSION) \
	-X github.com/prometheus/common/version.Revision=$(REVISION) \
	-X github.com/prometheus/common/version.Branch=$(BRANCH)

.PHONY: all build test lint cross check fuzz bench e2e-docker clean

all: check build

build: ## The static binary, as the image has it.
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o prober_exporter .

test: ## All tests, as CI runs them.
	$(GO) test -race -shuffle=on -timeout 10m ./...

lint: $(GOLANGCI_LINT)
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	mkdir -p bin
	GOBIN=$(CURDIR)/bin CGO_ENABLED=0 $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv bin/golangci-lint $@

cross: ## The systems that nobody tests must compile.
	GOOS=windows $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...

check: lint cross test

fuzz: ## Each fuzz target for FUZZTIME.
	set -e; for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
			$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; \
		done; \
	done

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

e2e-docker: ## The docker source against a real Docker Engine. Needs root.
	e2e/docker.sh

clean:
	rm -rf bin prober_exporter
