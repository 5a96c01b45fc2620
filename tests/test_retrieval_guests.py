"""An installed guest adds a retriever and a kind of vectors, by name in settings and in their JSON Schema."""
import os
import subprocess
import sys

import pytest

THEIRS = '''
from typing import Literal
from ragbed.guests import Guest
from ragbed.retrieval import Flat, Hit, RetrieverKind

class First(RetrieverKind):
    """Finds the first chunks."""
    kind: Literal["first"] = "first"

    def open(self, collection, deps):
        chunks = collection.chunks

        class Searcher:
            def search(self, queries, k):
                return [[Hit(chunk, 1.0, rank, "first") for rank, chunk in enumerate(chunks[:k], 1)] for _ in queries]
        return Searcher()

    def identity(self):
        return "first"

class Twin(Flat):
    """Compares every vector, under another name."""
    kind: Literal["twin"] = "twin"

GUEST = Guest("theirs", {"retriever": {"first": "theirs:First"}, "vectors": {"twin": "theirs:Twin"}})
'''
USE = """
import json, sys
from pathlib import Path
import theirs  # first of all: its own imports of ragbed must not go round in a circle
from ragbed.experiments.cli import build_app
from ragbed.experiments.settings.file import settings_schema
from ragbed.experiments.terminal.lists import retrievers
folder = Path(sys.argv[1])
for name in "ab":
    (folder / f"{name}.txt").write_text(f"the page {name}")
words = ["index", str(folder), "--out", str(folder / "idx"), "--embedder", "none", "--vectors", "twin"]
build_app()(words, standalone_mode=False)
words = ["search", "page", "--index", str(folder / "idx"), "--retriever", "{kind: fused, of: [first, bm25]}", "--json"]
build_app()(words, standalone_mode=False)
print(json.loads((folder / "idx" / "manifest.json").read_text())["kind"], "First" in str(settings_schema()["$defs"]),
      [row for row in map(str, retrievers()) if "first" in row] != [])
"""


@pytest.mark.slow
def test_kinds_of_an_installed_guest_are_used_by_name(tmp_path):
    about, pages = tmp_path / "theirs-1.dist-info", tmp_path / "pages"
    about.mkdir()
    pages.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[ragbed.guests]\ntheirs = theirs:GUEST\n")
    (tmp_path / "theirs.py").write_text(THEIRS)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", USE, pages], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path, "RAGBED_CACHE": str(tmp_path / "cache")})
    assert "no vectors (embedder none)" in done.stdout, done.stderr
    assert "fused(first 1, bm25 1)" in done.stdout
    assert done.stdout.endswith("{'kind': 'twin', 'codes': 'float32'} True True\n"), done.stdout
