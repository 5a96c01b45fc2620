"""Mined negatives written for training and other harnesses, and read back by their own readers."""
import importlib.util
import json

import pytest

from ragbed.experiments.guests.datasets.beir import Beir
from ragbed.experiments.guests.hard_negatives.mining import mine
from ragbed.experiments.guests.hard_negatives.selection import MiningSettings
from tests.tiny_models import make_tiny

PASSAGES = {"esk": "The Esk depot handled 1,577 parcels.", "gauge": "Rain fell on Lund for nine days.",
            "sand": "Sand drifts along the shore, tab\tand \"quotes\".", "sea": "The sea froze near Oslo.",
            "twin": "Nine days of rain were counted at Lund."}
QUERIES = {"1": "How many parcels did Esk handle?", "2": "How long did it rain in Lund?", "3": "Who rang the bell?"}
GOLD = [("1", "esk", 1), ("2", "gauge", 2), ("2", "twin", 1), ("3", "nowhere", 1)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    source = tmp_path_factory.mktemp("beir") / "five"
    (source / "qrels").mkdir(parents=True)
    (source / "corpus.jsonl").write_text("".join(
        json.dumps({"_id": id, "title": id.title(), "text": text}) + "\n" for id, text in PASSAGES.items()))
    (source / "queries.jsonl").write_text("".join(
        json.dumps({"_id": id, "text": text}) + "\n" for id, text in QUERIES.items()))
    (source / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(
        f"{query}\t{id}\t{grade}\n" for query, id, grade in GOLD))
    settings = MiningSettings(miners=("random",), per_question=4, fill=0, embedder=str(model), reranker=None)
    mine(Beir(path=str(source)), settings, source.with_name("mined"), lambda stage, done, total: None)
    return source.with_name("mined")


def export(ragbed, folder, to, form):
    status, out, err = ragbed("export", folder, to, "--as", form)
    assert status == 0, err
    return out


def text(id):
    return f"{id.title()}\n{PASSAGES[id]}"


def rows(path):
    """Read a table as `datasets.load_dataset` does, by that function itself if it is installed."""
    kind = {".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}[path.suffix]
    if importlib.util.find_spec("datasets"):
        from datasets import load_dataset

        return list(load_dataset(kind, data_files=str(path), split="train", cache_dir=str(path.parent / "cache")))
    from pyarrow import csv, parquet
    from pyarrow import json as lines

    read = {"json": lines.read_json, "parquet": parquet.read_table, "csv": lambda file: csv.read_csv(
        file, parse_options=csv.ParseOptions(newlines_in_values=True))}[kind]
    return read(path).to_pylist()


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_triplets_have_each_negative_with_each_gold_passage(ending, folder, ragbed, tmp_path):
    out = export(ragbed, folder, tmp_path / f"t.{ending}", "triplets")
    assert "10 rows; no row for 1 question without gold passages or negatives" in " ".join(out.split())
    found = rows(tmp_path / f"t.{ending}")
    assert list(found[0]) == ["anchor", "positive", "negative"]
    rain = {(row["positive"], row["negative"]) for row in found if row["anchor"] == QUERIES["2"]}
    assert rain == {(text(gold), text(negative)) for gold in ("gauge", "twin") for negative in ("esk", "sand", "sea")}
    assert len(found) == 4 + 6


def test_tuples_have_as_many_columns_as_the_fewest_negatives(folder, ragbed, tmp_path):
    out = export(ragbed, folder, tmp_path / "n.jsonl", "n-tuples")
    found = rows(tmp_path / "n.jsonl")
    assert [list(row) for row in found] == [["anchor", "positive", "negative_1", "negative_2", "negative_3"]] * 3
    assert "3 rows" in out
    assert "1 negative beyond the fewest of any question are left out" in " ".join(out.split())


def test_the_trainer_and_the_evaluators_of_sentence_transformers_read_them(folder, model, ragbed, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import (
        InformationRetrievalEvaluator,
        RerankingEvaluator,
        TripletEvaluator,
    )

    encoder = SentenceTransformer(str(model), device="cpu")
    export(ragbed, folder, tmp_path / "t.jsonl", "triplets")
    found = rows(tmp_path / "t.jsonl")
    triplets = TripletEvaluator(*([row[name] for row in found] for name in ("anchor", "positive", "negative")))
    assert 0 <= triplets(encoder)["cosine_accuracy"] <= 1
    export(ragbed, folder, tmp_path / "m.jsonl", "mteb")
    samples = rows(tmp_path / "m.jsonl")
    assert [len(one["positive"]) for one in samples] == [1, 2]
    assert 0 < RerankingEvaluator(samples)(encoder)["map"] <= 1
    export(ragbed, folder, tmp_path / "b", "beir")
    corpus = {row["_id"]: f"{row['title']} {row['text']}".strip() for row in rows(tmp_path / "b" / "corpus.jsonl")}
    queries = {row["_id"]: row["text"] for row in rows(tmp_path / "b" / "queries.jsonl")}
    judged = [line.split("\t") for line in (tmp_path / "b" / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    relevant = {query: {id for one, id, grade in judged if one == query and int(grade) > 0} for query in queries}
    assert 0 < InformationRetrievalEvaluator(queries, corpus, relevant)(encoder)["cosine_map@100"] <= 1


def test_beir_has_grades_and_is_read_back_as_a_benchmark(folder, ragbed, tmp_path):
    out = export(ragbed, folder, tmp_path / "b", "beir")
    assert "10 judgements; no row for 1 question without gold passages" in " ".join(out.split())
    made = Beir(path=str(tmp_path / "b")).load()
    assert sorted(chunk.content for chunk in made.shared) == sorted(map(text, PASSAGES))
    first, second = made.questions
    contents = {document.id: document.plain for document in made.documents.values()}
    assert [(contents[one.document], one.relevance) for one in second.gold] == [(text("gauge"), 2), (text("twin"), 1)]
    assert {contents[id] for id in first.irrelevant} == {text(id) for id in PASSAGES if id != "esk"}


@pytest.mark.parametrize(("to", "form", "said"), [
    ("x.jsonl", "ragas", "holds mined negatives; write them with --as triplets, n-tuples, mteb, beir"),
    ("x.txt", "triplets", "unknown ending; use .jsonl, .csv, .parquet"),
    ("x.csv", "mteb", "unknown ending; use .jsonl, .parquet")])
def test_another_format_or_ending_is_refused(to, form, said, folder, ragbed, tmp_path):
    ragbed.refuses("export", folder, tmp_path / to, "--as", form, says=[said])


def test_an_existing_output_stays(folder, ragbed, tmp_path):
    (tmp_path / "b").mkdir()
    ragbed.refuses("export", folder, tmp_path / "b", "--as", "beir", says=["exists; name another folder"])
