"""The house rules that a reader cannot be asked to remember: who imports whom, and what goes where."""
import ast
import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ["documents", "retrieval", "strategies", "agents", "experiments"]
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").glob("*.py")])
FILES = [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]
FRONT = sorted((ROOT / "ragbed").glob("*.py"))
OWN = ("ragbed", *(path.stem for path in FRONT))  # and the layers
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BROUGHT_BY = {  # packages that are imported as a part of one that is declared
    "torch": "sentence-transformers", "transformers": "sentence-transformers", "tokenizers": "sentence-transformers",
    "safetensors": "sentence-transformers", "langchain_core": "langgraph", "openai": "langchain-openai",
    "httpcore2": "httpx2", "anyio": "httpx2",
    "pydantic_core": "pydantic", "typing_extensions": "pydantic", "lxml": "beautifulsoup4",
    "charset_normalizer": "beautifulsoup4", "Stemmer": "bm25s", "starlette": "fastapi", "mcp_types": "mcp",
    "aiosqlite": "langgraph-checkpoint-sqlite", "psycopg_pool": "langgraph-checkpoint-postgres",
    "anthropic": "langchain-anthropic", "google": "langchain-google-genai",
    "ijson": "inspect-ai", "zstandard": "inspect-ai", "llama_index_instrumentation": "a user's own LlamaIndex"}
NAMES = {"bs4": "beautifulsoup4", "faiss": "faiss-cpu", "markdown_it": "markdown-it-py", "pptx": "python-pptx",
         "re2": "google-re2", "yaml": "pyyaml", "jsonpath": "python-jsonpath", "opentelemetry": "opentelemetry-sdk"}


@functools.cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imported(path):
    """Every module that a file imports, wherever in it."""
    names = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names.append(node.module)
    return [name.removeprefix("ragbed.") for name in names]


def importers(package):
    return {path.relative_to(ROOT).as_posix() for path in FILES
            if any(name.split(".")[0] == package for name in imported(path))}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_package_imports_only_from_those_above_it(layer):
    below = set(LAYERS[LAYERS.index(layer) + 1:])
    wrong = {path.name: names for path in FILES if path.is_relative_to(ROOT / layer)
             if (names := {name for name in imported(path) if name.split(".")[0] in below})}
    assert not wrong


def test_the_core_never_imports_a_guest():
    guests = ROOT / "experiments" / "guests"
    wrong = {path.relative_to(ROOT).as_posix(): names for path in FILES if not path.is_relative_to(guests)
             if (names := {name for name in imported(path) if name.startswith("experiments.guests.")})}
    assert not wrong


def test_no_file_imports_a_folder_by_its_bare_name():
    """A bare `import agents` finds the folder here, and another distribution's package elsewhere."""
    foreign = {"agents_sdk.py"}  # it imports openai-agents, in an environment without ragbed
    bare = {path.name for path in [*FILES, *TESTS] if path.name not in foreign for node in nodes(path)
            if (isinstance(node, ast.Import) and any(one.name.split(".")[0] in LAYERS for one in node.names))
            or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LAYERS)}
    assert not bare


def test_each_heavy_library_stays_in_its_place():
    assert all(path.startswith(("agents/", "experiments/guests/chat_graph/")) for path in importers("langgraph"))
    assert all(path.startswith(("retrieval/", "experiments/guests/learned_retrievers/"))
               for path in importers("sentence_transformers"))
    assert len(importers("faiss")) == 1
    assert len(importers("langchain_openai")) == 1
    assert not importers("pickle")


def test_no_file_is_longer_than_400_lines():
    files = [*FILES, *FRONT, *TESTS, *(ROOT / "experiments").rglob("assets/*")]
    long = {path.name: lines for path in files if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400}
    assert not long


def test_no_script_has_the_name_of_a_module_of_the_tests():
    """Both are imported by their bare names, so one would hide the other."""
    names = [path.name for path in TESTS if path.name != "conftest.py"]
    assert len({*names}) == len(names)


def test_no_function_is_longer_than_50_lines():
    functions = [(path, node) for path in [*FILES, *FRONT, *TESTS] for node in nodes(path)
                 if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert not {f"{path.name}: {one.name}": lines for path, one in functions
                if (lines := (one.end_lineno or 0) - one.lineno + 1) > 50}


def test_the_core_has_at_most_42_000_lines_and_each_guest_4_500():
    guests = ROOT / "experiments" / "guests"
    sizes = {}
    for path in [*FILES, *FRONT]:
        guest = path.relative_to(guests).parts[0] if path.is_relative_to(guests) else "core"
        sizes[guest] = sizes.get(guest, 0) + len(path.read_text(encoding="utf-8").splitlines())
    assert sizes.pop("core") <= 42_000
    assert {guest: lines for guest, lines in sizes.items() if lines > 4_500} == {}


def test_the_recipe_of_a_strategy_has_at_most_60_lines():
    """Without imports, docstrings and blank lines: what one reads to know what it does."""
    homes = (ROOT / "strategies", ROOT / "experiments" / "guests" / "more_strategies")
    files = [path for home in homes for family in ("reasoning", "retrieval") for path in (home / family).glob("*.py")]
    assert len(files) > 25
    assert not {path.name: lines for path in files if (lines := lines_of_recipe(path.read_text())) > 60}


def lines_of_recipe(source):
    left_out = set()
    for node in ast.walk(ast.parse(source)):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, node.end_lineno + 1))
    return sum(bool(line.strip()) for place, line in enumerate(source.splitlines(), 1) if place not in left_out)


def test_only_the_command_line_prints():
    printing = {path.relative_to(ROOT).as_posix() for path in FILES for node in nodes(path)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"}
    assert printing <= {"experiments/cli.py", "experiments/terminal/display.py"}


def test_importing_every_module_has_no_effect_and_needs_nothing_heavy_but_where_it_is_used():
    users = {f"ragbed.{name}" for name in (
        "agents.assistant", "agents.openai_chat",
        "experiments.guests.local_models.child", "experiments.guests.local_models.pull",
        "experiments.guests.pipelines.langchain_output", "experiments.guests.serving.app",
        "experiments.guests.chat_graph.chat_graph", "experiments.guests.chat_graph.studio",
        "experiments.guests.serving.configurations")}
    modules = {".".join(("ragbed", *path.relative_to(ROOT).with_suffix("").parts))
               for path in FILES if path.stem != "__init__"}
    heavy = {"torch", "sentence_transformers", "faiss", "pymupdf", "langchain_openai", "langgraph", "scipy",
             "statsmodels", "sklearn", "pyarrow", "ir_measures", "openai", "langchain_core"}
    assert users <= modules
    script = (f"import sys, importlib\nfor name in {sorted(modules - users)!r}:\n    importlib.import_module(name)\n"
              f"print(sorted({heavy!r} & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr


def names(requirements):
    return {re.match(r"[\w.-]+", one)[0].lower() for one in requirements}


def test_at_most_22_packages_are_required():
    assert len(names(PROJECT["dependencies"])) <= 22


def test_every_import_is_declared_or_comes_with_one_that_is():
    declared = names(PROJECT["dependencies"]).union(*map(names, PROJECT["optional-dependencies"].values()))
    for path in [*FILES, *FRONT]:
        for top in {name.partition(".")[0] for name in imported(path)} - {*sys.stdlib_module_names, *LAYERS, *OWN}:
            package = NAMES.get(top, BROUGHT_BY.get(top, top)).replace("_", "-").lower()
            assert package in declared or package.startswith("a user"), f"{path}: {top}"
