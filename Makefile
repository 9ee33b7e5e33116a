# Everything a person or CI does here is a target of this file; `make` lists them. A target that has succeeded leaves
# a stamp in .venv/stamps and is not repeated until what it depends on changes. Nothing here needs root.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL: # checks run cheapest first, and cargo and pytest have their own parallelism
.DEFAULT_GOAL := help

# The Python that .venv is made from, 3.11 or newer.
PYTHON ?= python3
# Arguments for `make demo`, `make bench` and `make matrix`, for example ARGS="--model lenet".
ARGS ?=

export VIRTUAL_ENV := $(CURDIR)/.venv
export PIP_DISABLE_PIP_VERSION_CHECK := 1
BIN := .venv/bin
STAMPS := .venv/stamps
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

# What cargo compiles, and what the tests look at beside it.
RUST := $(shell find crates cuda -type f) Cargo.toml $(wildcard Cargo.lock) rust-toolchain.toml
PYTHON_FILES := $(shell find python tests tools examples benches docs -type f \
                  -not -name '*.so' -not -name '*.pyc' -not -path '*/.*') pyproject.toml

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	      /^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(STAMPS)/examples $(STAMPS)/extension ## Set up, then train on Fashion-MNIST (ARGS="--model lenet")
	$(BIN)/python examples/fashion_mnist.py $(ARGS)

.PHONY: install
install: $(STAMPS)/extension ## Set up .venv with a release build of mxnp

.PHONY: quick
quick: $(STAMPS)/venv ## The edit loop: rebuild incrementally what changed in Rust, nearly as fast as a release build
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo build --profile quick --package mxnp-py --locked
	cp $${CARGO_TARGET_DIR:-target}/quick/lib_core.so python/mxnp/_core.abi3.so
	rm -f $(STAMPS)/extension

.PHONY: dev
dev: $(STAMPS)/dev $(STAMPS)/extension ## Set up .venv with the tools for development too

##@ Tests

.PHONY: test
test: $(STAMPS)/cargo-test $(STAMPS)/pytest ## Set up, then pass the tests: cargo's, then pytest's
	@grep -hE '^ *Summary|^test result: .* [1-9][0-9]* passed' $(STAMPS)/cargo-test.log || true
	@tail -n 1 $(STAMPS)/pytest.log

.PHONY: retest
retest: ## Run the tests again on an unchanged tree
	rm -f $(STAMPS)/cargo-test $(STAMPS)/pytest
	$(MAKE) test

.PHONY: check
check: fmt lint sizes deps clippy types docs cuda vectors test ## What CI runs, cheapest first

.PHONY: accuracy
accuracy: ## Every float32 number through the elementary functions, on each instruction set (ARGS="exp log" for some)
	MXNP_ACCURACY="$(ARGS)" cargo test --release --package mxnp-core --test accuracy -- --ignored --nocapture --test-threads 1

.PHONY: check-all
check-all: check model-check accuracy matrix wheel sdist ## The rest: model checking, every ISA x engine x threads, packages

##@ The checks one by one

.PHONY: fmt
fmt: $(STAMPS)/dev ## Formatting of Rust and Python
	cargo fmt --all --check
	$(BIN)/ruff format --check .

.PHONY: lint
lint: $(STAMPS)/dev ## ruff
	$(BIN)/ruff check .

.PHONY: sizes
sizes: $(STAMPS)/venv ## Sizes of files and functions, file headers, FIXME and TODO
	$(BIN)/python tools/check_sizes.py

.PHONY: deps
deps: $(STAMPS)/venv ## Licences and sources of what is linked in, after deny.toml
	$(BIN)/python tools/check_deps.py

.PHONY: clippy
clippy: $(STAMPS)/venv ## clippy, warnings as errors
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo clippy --workspace --all-targets --locked -- -D warnings

.PHONY: types
types: $(STAMPS)/dev $(STAMPS)/extension ## mypy, and the stub against the extension
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest mxnp._core --allowlist tools/stubtest_allowlist.txt --mypy-config-file pyproject.toml

.PHONY: docs
docs: $(STAMPS)/dev ## The documentation as pages in site/; a broken link fails
	$(BIN)/mkdocs build --quiet --strict

.PHONY: cuda
cuda: $(STAMPS)/dev ## Compile cuda/*.cu with NVRTC; needs no GPU
	$(BIN)/python tools/check_cuda.py

.PHONY: vectors
vectors: $(STAMPS)/extension ## The machine code of kernels: that they use the instruction set they are compiled for
	$(BIN)/python tools/check_vectors.py

.PHONY: model-check
model-check: ## loom and shuttle on the engine's queue
	tools/model_check.sh

.PHONY: matrix
matrix: $(STAMPS)/dev $(STAMPS)/extension ## pytest under every ISA x engine x number of threads, slow tests too
	$(BIN)/python tools/matrix.py $(ARGS)

##@ Packages and measurements

.PHONY: wheel
wheel: $(STAMPS)/dev $(STAMPS)/extension ## Build the wheel, install it in a clean environment, report sizes
	rm -rf dist/wheel
	$(BIN)/maturin build --release --strip --locked --quiet --out dist/wheel
	$(BIN)/python tools/check_wheel.py dist/wheel/*.whl
	$(BIN)/python tools/wheel_size.py dist/wheel/*.whl

.PHONY: sdist
sdist: $(STAMPS)/dev ## Build the source distribution, then a wheel from nothing but it
	rm -rf dist/sdist
	$(BIN)/maturin sdist --out dist/sdist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist/sdist dist/sdist/*.tar.gz
	$(BIN)/python tools/check_wheel.py dist/sdist/*.whl

.PHONY: bench
bench: $(STAMPS)/extension ## Time mxnp beside NumPy (ARGS="--with torch=PYTHON" adds a peer)
	$(BIN)/python benches/run.py $(ARGS)

.PHONY: table
table: $(STAMPS)/extension ## The table of speeds against each peer (ARGS="--peer torch=PYTHON ..."), kept in benches/results
	$(BIN)/python benches/table.py $(ARGS)

.PHONY: roofline
roofline: $(STAMPS)/extension ## What this machine can do, and each row's share of it, kept in benches/results
	$(BIN)/python benches/roofline.py $(ARGS)

.PHONY: import-time
import-time: $(STAMPS)/extension ## What `import mxnp` costs beyond NumPy's own import
	$(BIN)/python tools/import_time.py

##@ Upkeep

.PHONY: format
format: $(STAMPS)/dev ## Format Rust and Python in place
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: update-constraints
update-constraints: ## Move constraints.txt to the newest versions of everything
	tools/update_constraints.sh $(PYTHON)

.PHONY: clean
clean: ## Remove what was built, and .venv
	rm -rf target .venv dist site python/mxnp/*.so
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# ---- Stamps. One is dated by the start of its command, so that an edit made meanwhile counts as newer.

$(STAMPS)/venv: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "mxnp needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1)."; \
	  echo "hint: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@command -v cargo >/dev/null || { \
	  echo "mxnp needs the Rust toolchain to build, and there is no cargo on the PATH."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { \
	  echo "hint: this Python cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }
	@mkdir -p $(STAMPS) && touch $@.new
	$(PIP) maturin numpy
	@mv $@.new $@

# The list of files, rewritten only when one comes or goes: a deleted file must not leave a stamp standing.
$(STAMPS)/rust-files $(STAMPS)/python-files: FORCE | $(STAMPS)/venv
	@printf '%s\n' $(if $(findstring rust,$@),$(RUST),$(PYTHON_FILES)) | sort > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
FORCE:

$(STAMPS)/extension: $(STAMPS)/venv $(STAMPS)/rust-files $(RUST) pyproject.toml
	@touch $@.new
	PIP_QUIET=1 $(BIN)/maturin develop --release --locked
	@mv $@.new $@

$(STAMPS)/examples $(STAMPS)/test $(STAMPS)/dev: $(STAMPS)/venv pyproject.toml tools/extra.py
	@touch $@.new
	$(BIN)/python tools/extra.py $(@F) | $(PIP) --requirement /dev/stdin
	@mv $@.new $@

# mxnp-py is left out: it is linked by Python and tested through it.
CARGO_TEST := --workspace --exclude mxnp-py --locked
$(STAMPS)/cargo-test: $(STAMPS)/venv $(STAMPS)/rust-files $(RUST)
	@touch $@.new
	if cargo nextest --version >/dev/null 2>&1; \
	then cargo nextest run $(CARGO_TEST) --status-level fail && cargo test --doc $(CARGO_TEST) --quiet; \
	else cargo test $(CARGO_TEST) --quiet; fi 2>&1 | tee $(STAMPS)/cargo-test.log
	@mv $@.new $@

$(STAMPS)/pytest: $(STAMPS)/test $(STAMPS)/examples $(STAMPS)/extension $(STAMPS)/python-files $(PYTHON_FILES)
	@touch $@.new
	$(BIN)/python -m pytest 2>&1 | tee $(STAMPS)/pytest.log
	@mv $@.new $@
