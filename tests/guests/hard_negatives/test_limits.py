"""Limits of rank and score: equal to sentence-transformers' `mine_hard_negatives` on the same texts."""
import importlib.util
import json
import random
import sys
import types

import pytest

from ragbed.experiments.guests.datasets.beir import Beir
from ragbed.experiments.guests.hard_negatives.benchmark import MinedBenchmark
from ragbed.experiments.guests.hard_negatives.guard import Thresholds
from ragbed.experiments.guests.hard_negatives.mining import mine
from ragbed.experiments.guests.hard_negatives.mining_limits import Limits
from ragbed.experiments.guests.hard_negatives.selection import MiningSettings
from tests.tiny_models import make_tiny

PARTS = ("river", "rain", "sand", "sea", "the", "42", "harbour", "stone", "a wind", "old ice")


class Table:
    """What the miner of sentence-transformers asks of `datasets.Dataset`, for where that package is not installed."""

    def __init__(self, columns):
        self.columns = columns
        self.column_names = list(columns)

    @classmethod
    def from_dict(cls, columns):
        return cls(columns)

    def __len__(self):
        return len(self.columns[self.column_names[0]])

    def __getitem__(self, name):
        return self.columns[name]

    def to_pandas(self):
        import pandas

        return pandas.DataFrame(self.columns)


@pytest.fixture
def dataset(monkeypatch):
    if importlib.util.find_spec("datasets"):
        from datasets import Dataset

        return Dataset
    from sentence_transformers.util import hard_negatives

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(Dataset=Table))
    monkeypatch.setattr(hard_negatives, "is_datasets_available", lambda: True)
    return Table


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """40 passages and 6 queries with one to three gold passages each, in BEIR's layout."""
    draw = random.Random(5)
    texts = {f"p{number}": " ".join(draw.sample(PARTS, 5)) + f" {'xyzvw'[number % 5]}{number}" for number in range(40)}
    queries = {f"q{number}": " ".join(draw.sample(PARTS, 2)) + f" {number}" for number in range(6)}
    gold = {id: draw.sample(sorted(texts), 1 + number % 3) for number, id in enumerate(queries)}
    folder = tmp_path_factory.mktemp("beir") / "drawn"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(
        json.dumps({"_id": id, "title": "", "text": text}) + "\n" for id, text in texts.items()))
    (folder / "queries.jsonl").write_text("".join(
        json.dumps({"_id": id, "text": text}) + "\n" for id, text in queries.items()))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(
        f"{id}\t{one}\t1\n" for id, own in gold.items() for one in own))
    return folder, texts, queries, gold


def mined(folder, model, out, limits, n=3, reranker=None):
    settings = MiningSettings(
        miners=("dense",), per_question=n, fill=0, embedder=str(model), reranker=reranker, limits=limits,
        thresholds=Thresholds(same=1, part=1))
    manifest = mine(Beir(path=str(folder)), settings, out, lambda stage, done, total: None)
    found = {question.id: [chunk.content.strip() for chunk in question.negatives]
             for question in MinedBenchmark(path=str(out)).load().questions}
    return manifest, found


@pytest.mark.parametrize("limits", [
    {"range_min": 2, "range_max": 12}, {"absolute_margin": 0.01, "range_max": 30}, {"relative_margin": 0.02},
    {"max_score": 0.9, "range_max": 20}, {"min_score": 0.85},
    {"absolute_margin": -0.02, "range_min": 1, "range_max": 9},
    {"range_min": 1, "max_score": 0.93, "min_score": 0.8, "relative_margin": 0.005, "range_max": 25}],
    ids=lambda limits: "-".join(limits))
def test_the_limits_select_what_sentence_transformers_does(limits, model, collection, dataset, tmp_path, monkeypatch):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import mine_hard_negatives

    from ragbed.experiments.guests.hard_negatives.gold_text import GoldText

    monkeypatch.setattr(GoldText, "find_in", lambda self, text: None)  # the guard is ragbed's own
    folder, texts, queries, gold = collection
    pairs = [(queries[id], texts[one]) for id, own in gold.items() for one in own]
    theirs = mine_hard_negatives(
        dataset.from_dict({"query": [one for one, _ in pairs], "answer": [one for _, one in pairs]}),
        SentenceTransformer(str(model), device="cpu"), corpus=list(texts.values()), num_negatives=3, verbose=False,
        **limits)
    wanted = {id: [] for id in queries}
    ids = {text: id for id, text in queries.items()}
    for query, negative in zip(theirs["query"], theirs["negative"], strict=True):
        if negative not in wanted[ids[query]]:
            wanted[ids[query]].append(negative)
    _, found = mined(folder, model, tmp_path / "m", Limits(**limits))
    assert found == wanted
    assert any(found.values())


def test_a_random_sample_is_from_the_same_candidates_and_the_same_for_a_seed(model, collection, tmp_path):
    folder = collection[0]
    _, top = mined(folder, model, tmp_path / "top", Limits(range_max=8), n=8)
    drawn = [mined(folder, model, tmp_path / f"drawn{at}", Limits(range_max=8, sampling="random"))[1] for at in (1, 2)]
    assert drawn[0] == drawn[1]
    assert all(set(own) <= set(top[id]) and len(own) == 3 for id, own in drawn[0].items())
    assert any(own != top[id][:3] for id, own in drawn[0].items())


def test_what_the_limits_leave_out_is_recorded_and_counted(model, collection, tmp_path):
    manifest, found = mined(collection[0], model, tmp_path / "m", Limits(range_min=1, range_max=9, max_score=0.0))
    counts = manifest.counts["candidates"]
    decisions = [json.loads(line) for line in (tmp_path / "m" / "decisions.jsonl").read_text().splitlines()]
    out = [one for one in decisions if one["reason"] == "max_score"]
    assert not any(found.values())
    assert counts["max_score"] == len(out) > 0
    assert all(one["figures"]["score"] > 0 for one in out)
    assert {one["why"] for one in manifest.short.values()} == {"no other candidate is within the limits"}


@pytest.mark.parametrize(("given", "said"), [
    (("--range-min", "5", "--range-max", "5"), "range_max 5 is not above range_min 5"),
    (("--max-score", "0.2", "--min-score", "0.4"), "max_score 0.2 is below min_score 0.4"),
    (("--range-max", "20", "--depth", "10"), "range_max 20 is above depth 10"),
    (("--sampling", "best"), "choose from: top, random")])
def test_limits_that_exclude_each_other_are_refused(given, said, ragbed, collection, tmp_path):
    status, _, err = ragbed("negatives", "beir", collection[0], *given, "--out", tmp_path / "m")
    assert (status, said in " ".join(err.split())) == (2, True), err
