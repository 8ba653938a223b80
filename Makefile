# `make help` lists the targets. Replies of `make run` are alone on standard output.

PYTHON ?= python3
EXTRAS ?=
WORKERS ?= 3  # of two cores, since a third of the time goes to waiting for disks and children
VENV := .venv
BIN := $(VENV)/bin
MAKEFLAGS += --no-print-directory
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

comma := ,
empty :=
space := $(empty) $(empty)
joined = $(subst $(space),$(comma),$(strip $(subst $(comma),$(space),$(1))))
brackets = $(if $(strip $(1)),[$(call joined,$(1))])
# A stamp stands for one set of extras; it is stale once pyproject.toml has changed.
stamp = $(VENV)/.installed-$(subst $(comma),-,$(call joined,core $(1)))
CORE := $(call stamp,$(EXTRAS))
# Tests take every extra but torch, which is large: its own skip unless EXTRAS=embeddings.
DEV := $(call stamp,dev alerts dates images mcp multilingual onnx web $(EXTRAS))

# UNLOCKED=1 takes what the index has instead of what the lock names.
UNLOCKED ?=

.PHONY: venv run test check bench torture docs config lock clean help

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) >&2

venv: $(CORE) ## make .venv with the core (EXTRAS=a,b adds extras)
	@:

run: $(CORE) ## start the daemon if none runs, and chat (one message a line when piped)
	@exec $(BIN)/agentd up

# Each worker reads what pytest made of the tests, also where Python is told to keep nothing of the kind.
test coverage: export PYTHONDONTWRITEBYTECODE :=

test: $(DEV) ## run the whole test-suite
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not torture" $(ARGS)

coverage: $(DEV) ## run the test-suite and tell the branches that it passes in its own processes
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not torture" --cov --cov-report=term:skip-covered $(ARGS)

torture: $(DEV) ## run the long proofs
	@$(BIN)/python -m pytest -q -m torture $(ARGS)

# Each check runs, whatever the others found, so that one run tells all there is to mend.
check: $(DEV) ## lint, format, types, layers, known vulnerabilities, and what is written from code
	@failed=; \
	$(BIN)/ruff check -q . || failed="$$failed ruff"; \
	$(BIN)/ruff format -q --check . || failed="$$failed format"; \
	$(BIN)/mypy --no-error-summary || failed="$$failed types"; \
	$(BIN)/lint-imports --no-logo || failed="$$failed layers"; \
	$(BIN)/python scripts/audit.py || failed="$$failed vulnerabilities"; \
	$(BIN)/python -m agentd.app.config | cmp - config.example.toml || failed="$$failed config(make:config)"; \
	$(BIN)/python scripts/command_line.py | cmp - docs/command-line.md || failed="$$failed docs(make:docs)"; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi; echo ok

docs: $(DEV) ## write docs/command-line.md from the commands
	@$(BIN)/python scripts/command_line.py > docs/command-line.md.new
	@mv docs/command-line.md.new docs/command-line.md

config: $(DEV) ## write config.example.toml from the code
	@$(BIN)/python -m agentd.app.config > config.example.toml.new
	@mv config.example.toml.new config.example.toml

lock: $(DEV) ## write requirements/ for the dependencies in pyproject.toml
	@$(BIN)/python -m pip install -q 'uv>=0.8' </dev/null >&2
	@$(BIN)/python scripts/lock.py

bench: $(DEV) ## measure
	@$(BIN)/python -m benchmarks $(ARGS)

clean: ## remove .venv and what tools left behind
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "agentd needs Python 3.11 or newer; name it with PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "agentd needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: PYTHON=…" >&2; exit 1; }
	@rm -f $(VENV)/.installed-*
	@echo "making $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV) </dev/null >&2 || { \
	  rm -rf $(VENV); echo "on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

# The core by version and hash where a lock fits, and built with what the lock names; extras are in no lock.
$(CORE): pyproject.toml $(wildcard requirements/*.txt) | $(BIN)/python
	@echo "installing agentd$(call brackets,$(EXTRAS)) into $(VENV): this takes a minute or two, once" >&2
	@lock="$(if $(UNLOCKED),,$$($(BIN)/python scripts/lock.py --name))"; \
	if [ -n "$$lock" ]; then \
	  $(BIN)/python -m pip install -q --only-binary :all: --require-hashes -r "$$lock" </dev/null >&2 && \
	  $(BIN)/python -m pip install -q --no-deps --no-build-isolation -e . </dev/null >&2; \
	else \
	  echo "warning: no lock is used for this Python and platform: versions and hashes are the index's word" >&2; \
	  $(BIN)/python -m pip install -q -e . </dev/null >&2; \
	fi
	@$(if $(strip $(EXTRAS)),echo "warning: no lock names the extras $(EXTRAS)" >&2 && \
	  $(BIN)/python -m pip install -q -e '.$(call brackets,$(EXTRAS))' </dev/null >&2,:)
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	@echo "installing agentd$(call brackets,dev alerts dates images mcp multilingual onnx web $(EXTRAS)) into $(VENV): this takes minutes, once" >&2
	@$(BIN)/python -m pip install -q -e '.$(call brackets,dev alerts dates images mcp multilingual onnx web $(EXTRAS))' </dev/null >&2
	@touch $@
