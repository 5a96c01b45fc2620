"""Each optional package names its extra when it is missing, in one line."""
import re
import sys

import pytest

from ragbed.documents import MissingExtra, parse_document
from ragbed.documents.worker import answer


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
