"""Postings of large collections are built once and kept, whole, for every process that shares the cache."""
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import bm25s
import numpy as np
import pytest
from patience import SECONDS

from ragbed.documents import Chunk, Document, SettingsError
from ragbed.retrieval import Bm25, RerankerDeps
from ragbed.retrieval.filters.filtered_collection import filter_collection
from ragbed.retrieval.retrievers import bm25
from ragbed.retrieval.retrievers.bm25 import Postings

MANY = 1_000


class Reefs:
    """As many chunks as are kept, each with a word of its own."""

    among = None

    def __init__(self, wording="reefs", count=MANY):
        self.text_hash, self.content, self.read = wording, wording, 0
        self.chunks = [Chunk.of(Document(str(row), f"{row % 2}.txt", "t", "", text), "plain", 0, len(text))
                       for row, text in enumerate(f"reef number{row}" for row in range(count))]

    def texts(self):
        self.read += 1
        return (chunk.content for chunk in self.chunks)

    def metadata(self):
        return ({"source": f"{row % 2}.txt"} for row in range(len(self.chunks)))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path))
    return tmp_path / "bm25"


def found(collection, query="number7", **settings):
    (hits,) = Bm25(language="english", **settings).open(collection, RerankerDeps()).search([query], 3)
    return [(hit.chunk.document, hit.score) for hit in hits]


def test_texts_are_read_once_for_all_that_search_them_alike(cache):
    first, again = Reefs(), Reefs()
    assert [row for row, _ in found(first)] == ["7"]
    assert found(again) == found(first)
    assert (first.read, again.read) == (1, 0)
    assert found(again, stemming=False)
    assert found(again, k1=2.0)
    assert again.read == 2
    assert len(list(cache.iterdir())) == 3


def test_few_chunks_leave_nothing_on_disk(cache):
    assert found(Reefs(count=MANY - 1))
    assert not cache.exists()


def test_a_filter_searches_by_the_same_postings():
    whole = Reefs()
    assert found(whole)
    odd = filter_collection(whole, ["source = 1.txt"])
    assert [row for row, _ in found(odd)] == ["7"]
    assert [row for row, _ in found(odd, "reef")] == ["1", "3", "5"]
    assert found(odd, "number8") == []
    assert whole.read == 1


@pytest.mark.parametrize("method", ["lucene", "bm25+"])
def test_what_is_kept_gives_the_scores_of_what_was_built(method):
    whole = Reefs()
    settings = Bm25(language="english", method=method)
    built = Postings.build(whole.texts, settings.make_tokenizer(), settings.weights())
    tokens = ["reef", "number7", "number500"]
    assert found(whole, "reefs number7 number500", method=method) == [
        (str(row), score) for row, score in built.best(tokens, 3)]


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire", "bm25l", "bm25+"])
def test_blocks_on_disk_give_the_scores_of_one_index_of_bm25s_to_the_last_bit(tmp_path, monkeypatch, method):
    drawn = random.Random(method)
    texts = [[f"w{int(drawn.paretovariate(0.7)) % 500}" for _ in range(drawn.randrange(60))] for _ in range(700)]
    weights = {"method": method, "k1": 1.2, "b": 0.75, "delta": 0.5}
    one = bm25s.BM25(**weights)
    one.index(texts, create_empty_token=False, show_progress=False)
    monkeypatch.setattr(bm25, "_BLOCK_TOKENS", 2_000)

    class Split:
        compounds = False

        def tokens(self, texts, lexicon):
            return iter(texts)

    Postings.write(tmp_path, lambda: texts, Split(), weights)
    blocks = Postings.read(tmp_path)
    # Memory is that of a block, which is as long as one is allowed to be, and of what is mapped, which is not read.
    assert len(blocks.blocks) >= 9
    assert all(len(block.rows) < 2_060 and not block.scores.flags.writeable for block in blocks.blocks)
    for tokens in drawn.sample(list(filter(None, texts)), 60):
        asked = tokens[:7]
        scores = one.get_scores(asked)
        least = 0 if one.nonoccurrence_array is None else one.nonoccurrence_array[one.get_tokens_ids(asked)].sum()
        best = [row for row in np.argsort(-scores, kind="stable")[:10].tolist() if scores[row] > least]
        assert blocks.best(asked, 10) == [(row, float(scores[row])) for row in best]


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "sums", "nonsense"])
def test_damaged_postings_are_built_anew(cache, damage):
    before = found(Reefs())
    (folder,) = cache.iterdir()
    data, sums = folder / "blocks.int32", folder / "sums.json"
    content = bytearray(data.read_bytes())
    content[-1] ^= 1
    {"cut": lambda: data.write_bytes(content[:-100]), "changed": lambda: data.write_bytes(content),
     "gone": data.unlink, "sums": sums.unlink, "nonsense": lambda: sums.write_text("[1]")}[damage]()
    again = Reefs()
    assert found(again) == before
    assert again.read == 1
    assert set(json.loads(sums.read_text())) == {path.name for path in folder.iterdir()} - {"sums.json"}


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "file"))
    with pytest.raises(SettingsError, match="RAGBED_CACHE") as refused:
        found(Reefs())
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_two_processes_build_the_same_once(tmp_path, cache):
    script = ("import sys, time; sys.path.insert(0, 'tests')\n"
              "from test_kept_postings import Reefs, found\n"
              "class Slow(Reefs):\n"
              "    def texts(self):\n"
              "        time.sleep(0.3)\n"
              "        return super().texts()\n"
              "slow = Slow(); print(found(slow), slow.read)\n")
    root = Path(__file__).parent.parent
    both = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root,
                             env={**os.environ, "PYTHONPATH": str(root)}) for _ in range(2)]
    said = sorted(process.communicate(timeout=SECONDS)[0].strip().rpartition(" ") for process in both)
    assert [read for *_, read in said] == ["0", "1"]
    assert said[0][0] == said[1][0] == str(found(Reefs()))
    assert [folder.name for folder in cache.iterdir() if folder.name.startswith(".")] == []
