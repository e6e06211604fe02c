# Two commands matter: `make demo` shows it, `make test` checks it. Each sets up what it needs by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SDK1 := .venv-sdk1
SDK1_PINS := app/tests/interop/sdk1.txt
HERMES := .venv-hermes
HERMES_PINS := app/tests/interop/hermes.txt
FRAMEWORKS := .venv-bench
FRAMEWORKS_PINS := bench/frameworks.txt
UV := $(shell command -v uv 2>/dev/null)
NPM := $(shell command -v npm 2>/dev/null)
FUZZ ?= 10000000
TORTURES := fuzz mcp_cycles kill9 wrapped_kills every_write power_loss eight_processes relay three_nodes any_node postgres_operations rename_race served_load

PURE := core/model core/format core/jsonrpc core/surface core/view core/document core/redaction app/export app/editor_setup
TORTURES_OF_PRODUCTS := any_node served_load wrapped_kills
comma := ,
space := $(subst ,, )
# What is checked beside the tests; the longest begins first.
CHECKS := check-types check-types-darwin check-types-windows check-public-types coverage check-tests check-docs check-lint check-imports

.PHONY: demo docs matrix test quick quick-core quick-app $(CHECKS) bench torture field field-check fmt lock clean tmux chromium bubblewrap

demo: $(VENV)/.ready
	@$(BIN)/holdfast demo
	@$(BIN)/python examples/wrapped_and_killed.py

# Kept bytecode spares every program that a test starts the compiling of all it imports: a third of the whole time.
unexport PYTHONDONTWRITEBYTECODE

# The checks run two at once; the make of macOS cannot keep their outputs apart.
# Many tests wait for processes more than they compute: six at once keep two cores busy.
test: $(VENV)/.ready $(SDK1)/.ready $(HERMES)/.ready node_modules/.ready tmux chromium bubblewrap
	$(MAKE) --no-print-directory --jobs 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) $(CHECKS)
	$(BIN)/pytest -n 6 --dist worksteal

check-types: $(VENV)/.ready
	$(BIN)/basedpyright

check-types-darwin: $(VENV)/.ready
	$(BIN)/basedpyright --pythonplatform Darwin core/src app/src

check-types-windows: $(VENV)/.ready
	$(BIN)/basedpyright --pythonplatform Windows core/src app/src

check-public-types: $(VENV)/.ready
	PYTHONPATH=core/src:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
		$(BIN)/basedpyright --verifytypes holdfast --ignoreexternal | grep -E "error|Type completeness score" | tail -30 \
		| { said=$$(cat); echo "$$said"; echo "$$said" | grep -q "score: 100%"; }

check-lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check-imports: $(VENV)/.ready
	$(BIN)/lint-imports

# All tests can be loaded. What pytest makes of their files is kept: six workers at once would each make it anew.
check-tests: $(VENV)/.ready
	@said=$$($(BIN)/pytest --collect-only -q 2>&1) || { echo "$$said" | tail -40; exit 1; }; echo "$$said" | tail -1

check-docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Branches of the pure packages that their own unit tests go through. (What processes and clients do is tested from outside.)
coverage: $(VENV)/.ready
	rm -rf build/coverage
	$(BIN)/coverage run --source=$(subst $(space),$(comma),$(subst app/,holdfast_app.,$(subst core/,holdfast.,$(PURE)))) \
		-m pytest -q -p no:xdist $(wildcard $(subst app/,app/tests/unit/,$(subst core/,core/tests/unit/,$(PURE))))
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=77.5

# The tests on every Python that is there, and with the lowest dependencies.
matrix: $(VENV)/.ready
	$(BIN)/python -m tests.matrix

# The documentation, in a browser, built again at every change.
docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

# While one works: style, import rules, and the tests that start no processes.
quick: quick-core quick-app

# The library: no browser, no Node, no PostgreSQL.
quick-core: $(VENV)/.ready
	$(BIN)/ruff format --check core
	$(BIN)/ruff check core
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n 2 --dist worksteal -k "not postgres" core/tests/unit core/tests/laws core/tests/contract

quick-app: $(VENV)/.ready
	$(BIN)/ruff format --check app
	$(BIN)/ruff check app
	$(BIN)/pytest -q -n 2 --dist worksteal -k "not postgres" app/tests/unit app/tests/laws

bench: $(VENV)/.ready node_modules/.ready
	-@$(MAKE) --no-print-directory $(FRAMEWORKS)/.ready || echo "the row 'items' will lack the other frameworks"
	$(BIN)/python -m bench

# What takes too long for every day, one after the other; core/tests/torture/__init__.py says what and how much.
torture: $(addprefix torture-,$(TORTURES))

torture-fuzz: $(VENV)/.ready
	$(BIN)/python -m core.tests.torture --inputs $(FUZZ)

torture-%: $(VENV)/.ready
	$(BIN)/python -m $(if $(filter $*,$(TORTURES_OF_PRODUCTS)),app,core).tests.torture.$*

# Real agents of others, wrapped, against a scripted model: installs them into ~/.cache/holdfast-field ($$HOLDFAST_FIELD) first.
field: $(VENV)/.ready node_modules/.ready
	$(BIN)/python -m app.tests.field $(AGENTS)

# The same agents, each alone and wrapped, by `holdfast check`: writes docs/field.md. Takes hours.
field-check: $(VENV)/.ready node_modules/.ready
	$(BIN)/python -m app.tests.field.check $(AGENTS)

fmt: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The environment: uv where it is installed, venv and pip otherwise; the same versions either way.
$(VENV)/.ready: pyproject.toml core/pyproject.toml app/pyproject.toml constraints.txt
ifdef UV
	$(UV) venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt --editable ./core --editable ./app --group dev --group peers
else
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable ./core --editable ./app --group dev --group peers
endif
	@touch $@

# The pre-release of the official Python SDK has the name of the released one, so it lives in an environment of its own.
$(SDK1)/.ready: $(SDK1_PINS)
ifdef UV
	$(UV) venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(SDK1)
	$(UV) pip install --quiet --compile-bytecode --python $(SDK1)/bin/python -r $(SDK1_PINS)
else
	$(PYTHON) -m venv $(SDK1)
	$(SDK1)/bin/python -m pip install --quiet -r $(SDK1_PINS)
endif
	@touch $@

# A coding agent of others, written in Python, to be wrapped. Where it cannot be installed its checks say so and are skipped.
$(HERMES)/.ready: $(HERMES_PINS)
ifdef UV
	-$(UV) venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(HERMES)
	-$(UV) pip install --quiet --compile-bytecode --python $(HERMES)/bin/python -r $(HERMES_PINS) && touch $@
else
	-$(PYTHON) -m venv $(HERMES)
	-$(HERMES)/bin/python -m pip install --quiet -r $(HERMES_PINS) && touch $@
endif

# Other frameworks that keep sessions, for one benchmark; they need much that we do not.
$(FRAMEWORKS)/.ready: $(FRAMEWORKS_PINS)
ifdef UV
	$(UV) venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(FRAMEWORKS)
	$(UV) pip install --quiet --compile-bytecode --python $(FRAMEWORKS)/bin/python -r $(FRAMEWORKS_PINS)
else
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --quiet -r $(FRAMEWORKS_PINS)
endif
	@touch $@

# Real peers written in TypeScript, and what drives a browser. Without Node the checks that need them say so and are skipped, except in CI.
node_modules/.ready: package.json
ifdef NPM
	$(NPM) install --silent --no-audit --no-fund --no-package-lock
	@touch $@
else
	@mkdir -p node_modules && echo "npm is not installed: checks against the TypeScript peers will be skipped"
endif

# The chat is checked in a real terminal. Without tmux those checks say so and are skipped, except in CI, which installs it.
tmux:
	@command -v tmux >/dev/null || { test -n "$$CI" && test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& { apt-get install -qq -y tmux || { apt-get update -qq && apt-get install -qq -y tmux; }; }; } \
		|| echo "tmux is not installed: checks of the chat in a terminal will be skipped"

# The sandbox of agents is attacked for real. Without bubblewrap those checks say so and are skipped, except in CI, which installs it.
bubblewrap:
	@command -v bwrap >/dev/null || { test "$$(uname)" = Linux && test -n "$$CI" && test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& { apt-get install -qq -y bubblewrap || { apt-get update -qq && apt-get install -qq -y bubblewrap; }; }; } \
		|| echo "bubblewrap is not installed: attacks on the sandbox will be skipped"

# The web page is checked in a real browser. Without one those checks say so and are skipped, except in CI, which installs it.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| { test -n "$$CI" && test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& { apt-get install -qq -y --no-install-recommends chromium || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; }; }; } \
		|| echo "chromium is not installed: checks of the web page in a browser will be skipped"

# Choose newer versions of everything, then run the tests before committing the result.
lock:
	$(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate --no-emit-index-url --no-emit-package holdfast-core --no-emit-package holdfast \
		core/pyproject.toml app/pyproject.toml --all-extras --group dev --group peers -o constraints.txt
	printf "agent-client-protocol>=1.0.0rc3\nhttpx2[http2]\nwebsockets\n" | $(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate --no-emit-index-url - -o $(SDK1_PINS)
	printf "openai-agents\ngoogle-adk\nlanggraph\nlanggraph-checkpoint-sqlite\naiosqlite\n" | $(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate --no-emit-index-url - -o $(FRAMEWORKS_PINS)

clean:
	rm -rf $(VENV) $(SDK1) $(HERMES) $(FRAMEWORKS) node_modules
