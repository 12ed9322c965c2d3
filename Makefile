# Fabric Almanac. `make demo` and `make test` need python3 >= 3.11 and a package index, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal --durations 20 --durations-min 2

.PHONY: demo dashboard test test-all test-unit test-system tests check coverage fuzz bench docs audit clean

demo: $(VENV)/.installed  ## the whole way once, on shipped sample data
	$(BIN)/almanac demo

dashboard: $(VENV)/.installed-dashboard  ## the pages in a browser
	$(BIN)/almanac dashboard

test: check tests  ## what CI runs: lint, types, and the tests of all tiers but system, of which a smoke test each

test-all: check $(VENV)/.installed-dev  ## everything
	$(PYTEST)

test-unit: $(VENV)/.installed-dev  ## no server, no other process: what one runs while typing
	$(PYTEST) --tier unit

test-system: $(VENV)/.installed-dev  ## what make test leaves out; ORDER=TEXT shuffles, UNTIL=SECONDS starts none later
	$(PYTEST) --tier system --order "$(ORDER)" $(if $(UNTIL),--start-until $(UNTIL))

tests: $(VENV)/.installed-dev
	$(PYTEST) --tier unit --tier server --tier smoke

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

coverage: $(VENV)/.installed-dev  ## covered lines of each module (kernels are compiled, not counted): make coverage TESTS=tests/ingest
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/coverage run -m pytest --numprocesses auto --dist worksteal $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --sort cover
	$(BIN)/coverage html --quiet --directory build/coverage/html

fuzz: $(VENV)/.installed-dev  ## damaged files of every format, more than in the suite: make fuzz SECONDS=600
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),120) --seed $(or $(SEED),0)

bench: $(VENV)/.installed-bench  ## measure again and record under bench/results
	$(BIN)/python -m bench

docs: $(VENV)/.installed-dev  ## the site in build/site, man pages in build/man, and docs/reference/commands.md from the commands
	$(BIN)/python -m almanac.reference > docs/reference/commands.md
	$(BIN)/python -m almanac.reference build/man
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -d build/doctrees docs build/site
	@echo "build/site/index.html, build/man"

audit: $(VENV)/.installed-dashboard  ## known vulnerabilities and the licence of each package that an installation brings
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip --disable-pip-version-check --quiet install pip-audit pip-licenses
	build/audit/bin/pip-licenses --python $(BIN)/python --order license
	build/audit/bin/pip-audit --strict --path $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What users install is kept small: pip writes no bytecode of modules that nothing imports, and the tests of other
# projects are deleted. Sizes: bench/results/install.json.
INSTALL := $(PIP) install --no-compile --constraint constraints.txt --editable
DELETE_TESTS := find $(VENV)/lib -path '*/site-packages/*' -type d -name tests -prune -exec rm -r {} +

$(VENV)/.installed: $(VENV)/.python pyproject.toml constraints.txt
	$(INSTALL) .
	@$(DELETE_TESTS)
	@$(BIN)/python -c 'import networkx, neo4j, numba, pymetis, rich.table, scipy.optimize, scipy.sparse.linalg'
	@touch $@

$(VENV)/.installed-dashboard: $(VENV)/.python pyproject.toml constraints.txt
	$(INSTALL) '.[dashboard]'
	@$(DELETE_TESTS)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[dev,docs,dashboard,login,serve,py2neo,otf2]'
	NUMBA_CACHE_DIR=$(CURDIR)/build/kernels $(BIN)/almanac doctor --warm
	$(BIN)/pytest --collect-only --quiet > /dev/null  # compiles the tests and what they import to bytecode
	@touch $@ $(VENV)/.installed $(VENV)/.installed-dashboard

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(PIP) install --constraint constraints.txt --editable '.[bench]'
	@touch $@
