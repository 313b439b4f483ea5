# What can be done here; `make help` lists it. Needed: git, make, Go, and the Go module proxy.

MODULES := . test test/cluster test/cluster/components tools tools/lint tools/vuln
LIBRARY := ./taint ./lease ./drainer ./maintenance
COVERAGE := 90

# As the operator's image is built (test/deploy/build.go), so that the packages it needs are compiled once for all.
export CGO_ENABLED := 0

# The race detector needs a C compiler. Without one the tests run all the same, and say so.
RACE := $(if $(shell command -v $${CC:-gcc} || command -v cc || command -v clang),-race)
ifeq ($(RACE),)
$(info no C compiler: tests run without the race detector; install gcc to have it)
endif

TOOL := go tool -modfile=tools/go.mod
LINT := go tool -modfile=tools/lint/go.mod golangci-lint
LINT_PATH := go tool -modfile=tools/lint/go.mod -n golangci-lint
VULN := -modfile=tools/vuln/go.mod
# The Go release whose standard library is looked at: the newest patch of the one we build with, as the image has it.
PATCHED := go1.26.11

.DEFAULT_GOAL := help

.PHONY: help
help: ## list what can be done
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## show the main job on a real control plane (KEEP=1 leaves it up)
	@cd test && KEEP=$(KEEP) go run ./demo

.PHONY: unit
unit: ## test all packages on the fake cluster, and their coverage
	$(if $(RACE),CGO_ENABLED=1) go test $(RACE) ./...
	@go test -coverprofile=/dev/null $(LIBRARY) | awk -v least=$(COVERAGE) ' \
		{ print } \
		match($$0, /coverage: [0-9.]+%/) { if (substr($$0, RSTART + 10, RLENGTH - 11) + 0 < least) low = low "\n  " $$2; seen++ } \
		END { if (seen != 4) { print "coverage of " seen + 0 " packages instead of 4"; exit 1 } \
		      if (low) { print "coverage is under " least "% in:" low; exit 1 } }'

.PHONY: test
test: unit ## test everything, also on a real control plane (the first run builds it: about 10 minutes)
	cd test/cluster && go test -timeout 40m ./...
	cd test && go test -timeout 40m ./...

.PHONY: bench
bench: ## measure the operator beside its peers, into docs/benchmarks.md (long; W=W1,W3 picks workloads)
	@cd test && go run ./bench -w "$(W)"

.PHONY: faults
faults: ## let one thing after another go wrong on a real control plane (F=kill,etcd picks some; SEED=N repeats)
	@cd test && go run ./faults -f "$(F)" $(if $(SEED),-seed $(SEED))

.PHONY: soak
soak: ## maintain 50 nodes at random, with faults, for FOR (default 10m): memory, goroutines and watches must stay flat
	@cd test && go run ./soak -for $(or $(FOR),10m) $(if $(SEED),-seed $(SEED))

GOBENCH := docs/benchmarks/go.txt
.PHONY: gobench
gobench: ## measure the code itself into docs/benchmarks/go.txt (compare two: benchstat OLD NEW)
	go test -run '^$$' -bench . -benchmem -count=10 $(LIBRARY) ./operator >$(GOBENCH).tmp
	@grep -E '^(goos|goarch|pkg|cpu|Benchmark)' $(GOBENCH).tmp >$(GOBENCH); rm $(GOBENCH).tmp

.PHONY: fuzz
fuzz: ## let each fuzzer look for FUZZTIME (default 2m) for what breaks a promise
	@for f in $$(grep -oE '^func Fuzz[A-Za-z0-9]+' $(patsubst %,%/*_test.go,$(LIBRARY) ./operator) | sed 's|/[^/]*_test.go:func |:|'); do \
		echo "$$f"; go test $${f%:*} -run '^$$' -fuzz "^$${f#*:}$$" -fuzztime $(or $(FUZZTIME),2m) || exit 1; \
	done

.PHONY: mutants
mutants: ## put bugs into the packages, one at a time, and see that a test catches each
	@cd test && go run ./mutants

.PHONY: cluster
cluster: ## bring a real control plane up, until Ctrl-C
	@cd test/cluster && go run ./cmd/cluster up

.PHONY: generate
generate: ## generate deep copies, the CRD and the operator's rights
	$(TOOL) controller-gen object:headerFile=tools/boilerplate.go.txt paths=./apis/...
	$(TOOL) controller-gen crd paths=./apis/... output:crd:artifacts:config=operator/config/crd/bases
	$(TOOL) controller-gen rbac:roleName=manager-role paths=./operator output:rbac:artifacts:config=operator/config/rbac

.PHONY: lint
lint: ## check the code, and who imports whom
	$(LINT) run ./...
	@bin=$$($(LINT_PATH)) && for m in test test/cluster; do (cd $$m && echo "$$m" && $$bin run ./...) || exit 1; done

# The database is a Go module too, pinned beside the tool: the answer changes when the code does or the pin.
.PHONY: vuln
vuln: ## look for known vulnerabilities that the code reaches
	@set -e; db=$$(mktemp -d); trap 'rm -r "$$db"' EXIT; \
	index=$$(go tool $(VULN) -n indexdb); check=$$(go tool $(VULN) -n govulncheck); \
	$$index -vulns "$$(go list $(VULN) -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv" -out "$$db"; \
	for m in . test test/cluster; do echo "$$m"; (cd $$m && GOTOOLCHAIN=$(PATCHED) $$check -db "file://$$db" ./...) || bad="$$bad $$m"; done; \
	test -z "$$bad" || { echo "vulnerable:$$bad"; exit 1; }

.PHONY: tidy
tidy: ## go mod tidy in every module
	@for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done

.PHONY: verify
verify: ## check that all is generated, tidy, linted and committed, then vuln
	@for m in $(MODULES); do (cd $$m && go mod tidy -diff) || { echo "$$m/go.mod is not tidy: run make tidy"; exit 1; }; done
	@$(MAKE) --no-print-directory generate
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	@$(MAKE) --no-print-directory lint
	@git diff --exit-code --stat || { echo "generated files were not up to date, or are not committed"; exit 1; }
	@test -z "$$(git status --porcelain)" || { git status --short; echo "the tree is not clean"; exit 1; }
	@$(MAKE) --no-print-directory vuln
