# make demo    train the digits network (makes .venv on the first run)
# make test    all that CI runs: lint, types, layers, tests
# make test-all  the same with every program and order of passes, where `test` takes a daily sample
# make quick   lint, front end, types, golden files and a sample of the zoo: half a minute, while you work
# make lint    the same as `test` without the tests
# make test-gpu  what needs a GPU: the tests' programs, compute-sanitizer, speed; one line where there is none
# make bench   timings against NumPy, and PyTorch and JAX where installed (make bench-extras)
# make vta-roofline  what the accelerator VTA reaches on layers of ResNet-18, as a table and a picture
# make clean   remove what the others made, .venv included

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo test test-all test-gpu quick quick-tests lint bench bench-extras vta-roofline clean

# The first Python that is new enough and can make environments; or say `make PYTHON=...`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2

demo: $(VENV)/demo.stamp
	$(RUN) examples/digits.py

test: lint
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal

test-all: lint
	RELAY_TEST_ALL=1 $(RUN) -m pytest -n $(WORKERS) --dist worksteal

test-gpu: $(VENV)/test.stamp
	$(RUN) benchmarks/gpu_report.py

quick: $(VENV)/test.stamp
	$(MAKE) --no-print-directory -j2 lint quick-tests

QUICK := tests/frontend/test_lowering*.py tests/typecheck/test_error_files.py tests/typecheck/test_type_errors.py \
	tests/typecheck/test_language_errors.py tests/typecheck/test_types.py tests/text/test_printer.py tests/transform/test_golden.py \
	tests/programs/test_zoo.py

quick-tests: $(VENV)/test.stamp
	RELAY_TEST_QUICK=1 $(RUN) -m pytest -q -n $(WORKERS) --dist worksteal $(QUICK)

lint: $(VENV)/test.stamp
	$(RUN) -m ruff check .
	$(RUN) -m mypy --strict -p relay
	$(VENV)/bin/lint-imports

bench: $(VENV)/demo.stamp
	$(RUN) benchmarks/run.py

vta-roofline: $(VENV)/demo.stamp
	$(RUN) benchmarks/vta_roofline.py

bench-extras: $(VENV)/demo.stamp
	$(PIP) -r requirements/bench.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/python.stamp:
	@python="$(PYTHON)"; [ -n "$$python" ] || { echo "no Python 3.11+ with the venv module found; set PYTHON" >&2; exit 1; }; \
	echo "making $(VENV) with $$("$$python" --version)"; "$$python" -m venv --clear $(VENV)
	@touch $@

$(VENV)/demo.stamp: requirements/build.txt requirements/runtime.txt requirements/examples.txt setup.py | $(VENV)/python.stamp
	$(PIP) -r requirements/build.txt -r requirements/runtime.txt -r requirements/examples.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/test.stamp: requirements/test.txt $(VENV)/demo.stamp
	$(PIP) -r requirements/test.txt
	@touch $@
