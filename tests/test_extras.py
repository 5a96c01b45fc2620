"""Each optional package names its extra when it is missing, in one line; and every import is declared."""
import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from ragbed.documents import MissingExtra, parse_document
from ragbed.documents.worker import answer

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BROUGHT_BY = {  # packages that are imported as a part of one that is declared
    "torch": "sentence-transformers", "transformers": "sentence-transformers", "tokenizers": "sentence-transformers",
    "safetensors": "sentence-transformers", "langchain_core": "langgraph", "openai": "langchain-openai",
    "pydantic_core": "pydantic", "typing_extensions": "pydantic", "lxml": "beautifulsoup4",
    "charset_normalizer": "beautifulsoup4", "Stemmer": "bm25s", "starlette": "fastapi", "mcp_types": "mcp",
    "aiosqlite": "langgraph-checkpoint-sqlite", "psycopg_pool": "langgraph-checkpoint-postgres",
    "ijson": "inspect-ai", "zstandard": "inspect-ai", "llama_index_instrumentation": "a user's own LlamaIndex"}
NAMES = {"bs4": "beautifulsoup4", "faiss": "faiss-cpu", "markdown_it": "markdown-it-py", "pptx": "python-pptx",
         "yaml": "pyyaml", "jsonpath": "python-jsonpath", "opentelemetry": "opentelemetry-sdk"}


def names(requirements):
    return {re.match(r"[\w.-]+", one)[0].lower() for one in requirements}


def test_at_most_22_packages_are_required():
    assert len(names(PROJECT["dependencies"])) <= 22


def test_every_import_is_declared_or_comes_with_one_that_is():
    declared = names(PROJECT["dependencies"]).union(*map(names, PROJECT["optional-dependencies"].values()))
    for folder in ("documents", "retrieval", "strategies", "agents", "experiments", "ragbed"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                found = [one.name for one in node.names] if isinstance(node, ast.Import) else [
                    node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
                for top in {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"ragbed"}:
                    package = NAMES.get(top, BROUGHT_BY.get(top, top)).replace("_", "-").lower()
                    assert package in declared or package.startswith("a user"), f"{path}: {top}"


@pytest.mark.parametrize(("suffix", "package"), [("docx", "mammoth"), ("pptx", "pptx"), ("xlsx", "openpyxl")])
def test_a_document_names_the_extra_that_its_parser_needs(suffix, package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    line = f"{package} is not installed; run: pip install 'ragbed[office]'"
    with pytest.raises(MissingExtra, match=re.escape(line)):
        parse_document(b"PK", f"report.{suffix}")
    (file := tmp_path / f"report.{suffix}").write_bytes(b"PK")
    assert answer({"path": str(file), "relative": file.name, "max_bytes": 9}) == {"reason": line}


@pytest.mark.parametrize(("command", "package", "extra"), [
    ("serve INDEX --model http://127.0.0.1:9/v1#m --retriever bm25", "fastapi", "serve"),
    ("serve INDEX --model http://127.0.0.1:9/v1#m --retriever bm25 --mcp", "mcp", "mcp"),
    ("ask Why? --index INDEX --model smollm2-135m --retriever bm25", "xllamacpp", "local")])
def test_a_command_names_the_extra_that_it_needs(command, package, extra, monkeypatch, ragbed, tmp_path):
    (tmp_path / "page.txt").write_text("Ferries leave at noon.")
    ragbed.json("index", tmp_path / "page.txt", "--out", tmp_path / "idx", "--embedder", "none")
    monkeypatch.setitem(sys.modules, package, None)
    status, _, err = ragbed(*(tmp_path / "idx" if one == "INDEX" else one for one in command.split()))
    assert (status, err.strip().splitlines()[-1]) == (
        2, f"ragbed: {package} is not installed; run: pip install 'ragbed[{extra}]'")


def test_a_pipeline_names_the_extra_that_its_settings_need(monkeypatch, ragbed, tmp_path):
    monkeypatch.setitem(sys.modules, "jsonpath", None)
    (tmp_path / "run.yaml").write_text(
        "benchmark: {kind: demo, limit: 1}\nconditions: closed-book\n"
        "pipelines: [{kind: http, name: mine, url: 'http://127.0.0.1:9', answer: $.text}]\n")
    ragbed.refuses("run", tmp_path / "run.yaml", "--dry-run",
                   says=["jsonpath is not installed; run: pip install 'ragbed[pipelines]'"])
