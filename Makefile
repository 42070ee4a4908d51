# Everything starts here; `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
export PATH := $(CURDIR)/target/tools/bin:$(HOME)/.cargo/bin:$(PATH)

DEMO_OUT ?= results/demo

.PHONY: help setup build experiments python test demo demo-lossless failover soak moves guest bond tenants bcube-paths \
    tcp dual-stack reproduce check test-stress format bench bench-sim fuzz docs check-models prove-failures \
    rtl rtl-model

help: ## this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 10

setup: ## installs what is missing, or says what is
	@tools/setup

# Line tables are in a file beside the program, where debuggers and backtraces find them.
build: setup ## the axon binary, in target/release
	cargo build --release --locked -p axon
	objcopy --only-keep-debug target/release/axon target/release/axon.debug
	objcopy --strip-debug --add-gnu-debuglink=target/release/axon.debug \
	    target/release/axon target/release/axon.stripped
	mv target/release/axon.stripped target/release/axon

experiments: setup ## the programs of `axon reproduce`, `cam`, `bench`, `demo` and `model`, beside axon
	cargo build --release --locked -p axon-papers -p axon-bench -p axon-demo -p axon-model

python: setup ## the Python module `axon` in target/python, for control programs in Python
	tools/python

test: export CARGO_INCREMENTAL = 0
test: export AXON_PYTHON = $(CURDIR)/target/python/bin/python
test: setup format ## format, lints, docs, all tests, the seeds of the fuzz targets, the quick part of rtl
	$(MAKE) --no-print-directory -C ebpf check
	cargo clippy --locked --workspace --all-targets --features axon-fuzz/targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet
	$(MAKE) --no-print-directory -C rtl quick model
	tools/test --build
	tools/python built
	tools/python check
	tools/test

check: setup format ## of the crates changed since main and their dependents: lints, tests
	cargo clippy --locked --workspace --all-targets -- -D warnings
	tools/test --changed

test-stress: setup python ## all tests RUNS times, 10 by default, beside a load; every second run on one core
	tools/test --runs $(or $(RUNS),10) --load

# The rules of the house have few dependencies: they run before the workspace is built.
format:
	cargo fmt --all --check
	cargo fetch --locked --quiet
	cargo test --locked --quiet -p axon-tidy

# The demo alone, and quick to build: nothing of the simulator and the other papers.
demo: setup ## table 1 of the Axon paper with real Linux hosts; results in results/demo
	cargo build --profile demo --locked -p axon-demo
	target/demo/axon-demo --out $(DEMO_OUT)

demo-lossless: build ## a deadlock of lossless links: foretold, brought about, and avoided; on Linux too
	tools/demo-lossless

failover: $(if $(AXON),,build) ## the gap of 50 cuts in a lab, with backup routes and without; as root
	tools/failover --axon $(or $(AXON),target/release/axon)

soak: $(if $(AXON),,build) ## 30 minutes of random failures and moves under traffic, in a lab; as root
	tools/soak --axon $(or $(AXON),target/release/axon) --minutes $(or $(MINUTES),30)

moves: $(if $(AXON),,build) ## the gap of hosts that move from switch to switch in a lab; as root
	tools/moves --axon $(or $(AXON),target/release/axon)

guest: $(if $(AXON),,build) ## a virtual machine under QEMU moves, with its TCP connection; as root
	tools/guest --axon $(or $(AXON),target/release/axon)

dual-stack: setup ## 50 dual-stack hosts on a torus, silent until asked: all pairs, names, groups; as root
	AXON_DUAL_STACK=torus cargo test --locked -p axon-lab --test all dual_stack::

bond: $(if $(AXON),,build) ## a virtual machine with an LACP bond to two switches, each of which fails; as root
	tools/bond --axon $(or $(AXON),target/release/axon)

tenants: $(if $(AXON),,build) ## 20 revocations under load, and a scan, in a lab; as root
	tools/tenants --axon $(or $(AXON),target/release/axon)

bcube-paths: $(if $(AXON),,build) ## two TCP connections over the two paths of BCube, with real hosts; as root
	AXON=$(or $(AXON),target/release/axon) tools/bcube-paths

tcp: $(if $(AXON),,build) ## the simulator's TCP beside Linux's, over the same fabric files; as root
	tools/tcp --axon $(or $(AXON),target/release/axon)

# ROWS are ids of experiments, REPRODUCE a program that is built already, OUT the folder of the
# results.
reproduce: $(if $(REPRODUCE),,experiments) ## every table and figure of the papers, or ROWS; in results/reproduce
	$(or $(REPRODUCE),target/release/axon-reproduce) $(or $(ROWS),'*') \
	    --threads $$(nproc) --out $(or $(OUT),results/reproduce)

check-models: setup ## every state of the protocols' models; MODEL=part of a name runs only those
	cargo run --release --locked -p axon-check -- "$(MODEL)"

prove-failures: setup ## each link and each switch of 100 random fabrics fails: proved, and under saturation
	AXON_FABRICS=$(or $(FABRICS),100) cargo test --release --locked -p axon-fabric --lib \
	    every_single_failure -- --nocapture
	AXON_FABRICS=$(or $(FABRICS),100) cargo test --release --locked -p axon-sim --test all \
	    a_saturated_fabric -- --nocapture

bench: setup ## benchmarks, on one core
	cargo bench --locked --workspace

bench-sim: setup ## the same fat tree in ns-3, in htsim (HTSIM=a checkout) and here, alternately
	tools/bench-sim

fuzz: setup ## every fuzz target with libFuzzer, ten minutes each unless FUZZ_SECONDS is set
	tools/fuzz $(or $(FUZZ_SECONDS),600)

docs: setup ## the documentation of all crates, in target/doc
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

# Has tools of its own, in target/rtl-venv. RTL=quick stays below two minutes; `make -C rtl help` lists the targets.
rtl: ## the device in gates: lint, tests, proofs, mutants, synthesis; or RTL=a target of rtl/Makefile
	$(MAKE) --no-print-directory -C rtl $(or $(RTL),all)

rtl-model: ## the device in gates as shared libraries, for `dataplane: rtl`, in target/rtl
	$(MAKE) --no-print-directory -C rtl model
