"""`ragbed negatives`, and the benchmark that it writes: loaded, asked and refused like any other."""
import json
import re
import shutil
from pathlib import Path

import pytest

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.hard_negatives.benchmark import MinedBenchmark

DATA = Path(__file__).parents[2] / "data"
SOURCE = DATA / "hotpotqa_195" / "hotpot_dev_distractor_v1.jsonl"
MINERS = ("--miner", "dense", "--miner", "bm25", "--miner", "random")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three questions of HotpotQA with their thirty paragraphs; mined once for all tests."""
    from ragbed.experiments.guests.hard_negatives.mining import mine
    from ragbed.experiments.guests.hard_negatives.selection import MiningSettings

    place = tmp_path_factory.mktemp("mined") / "hotpotqa"
    settings = MiningSettings(miners=("dense", "bm25", "random"), per_question=6, fill=5)
    mine(HotpotQa(path=str(SOURCE), limit=3), settings, place, lambda stage, done, total: None)
    return place


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_questions_keep_all_they_had_and_are_filled_up_with_negatives(folder):
    source, made = HotpotQa(path=str(SOURCE), limit=3).load(), MinedBenchmark(path=str(folder)).load()
    assert made.name == "mined:hotpotqa"
    assert made.scheme == source.scheme
    for before, after in zip(source.questions, made.questions, strict=True):
        gold = {item.chunk for item in before.gold}
        shown = [chunk.id for chunk in after.provided]
        assert (after.id, after.text, after.answers, after.gold, after.tags) == (
            before.id, before.text, before.answers, before.gold, before.tags)
        assert len(shown) == 5
        assert gold < set(shown)
        assert len(after.negatives) == 6
        assert set(after.mined) == ({*shown} | {chunk.id for chunk in after.negatives}) - gold
        assert {chunk.document for chunk in after.chunks} <= made.documents.keys()
    assert {question.provided.index(next(chunk for chunk in question.provided if chunk.id == question.gold[0].chunk))
            for question in made.questions} != {0}


def test_each_negative_says_who_found_it_and_how_hard_it_is(folder):
    for question in MinedBenchmark(path=str(folder)).load().questions:
        buckets = [one.bucket for one in question.mined.values()]
        assert (buckets.count("hard"), buckets.count("medium"), buckets.count("easy")) == (3, 3, 3)
        for one in question.mined.values():
            assert 0 <= one.hardness <= 1
            assert one.miner in {found.miner for found in one.found} <= {"dense", "bm25", "random"}
            near = [found.score for found in one.found if found.miner == "dense"]
            assert all(max(score, 0) == pytest.approx(one.hardness, abs=1e-5) for score in near)


def test_every_decision_is_kept_and_counted(folder):
    manifest, decisions = json.loads((folder / "manifest.json").read_text()), lines(folder / "decisions.jsonl")
    counts = manifest["counts"]
    assert counts["candidates"]["kept"] == counts["kept"] == counts["wanted"] == 27
    assert sum(counts["candidates"].values()) == 27 + len(decisions)
    assert {one["reason"] for one in decisions} <= counts["candidates"].keys()
    assert all(one["content"] and one["found"] for one in decisions)
    assert manifest["short"] == {}
    guard = counts["guard"]
    assert sum(band["rejected"] for band in guard["ranks"].values()) == sum(
        one["reason"] != "repeated" and any(found["miner"] != "random" for found in one["found"]) for one in decisions)
    questions = MinedBenchmark(path=str(folder)).load().questions
    hard = [one.hardness for question in questions for one in question.mined.values()]
    assert guard["hardness"]["kept"] == pytest.approx(sum(hard) / 27, abs=1e-5)
    assert manifest["attribution"].endswith("licence: CC BY-SA 4.0")


def test_the_same_mining_writes_the_same_bytes(folder, tmp_path, ragbed):
    status, out, _ = ragbed("negatives", "hotpotqa", SOURCE, "--limit", 3, *MINERS, "--per-question", 6, "--fill", 5,
                            "--out", tmp_path / "again")
    assert status == 0
    assert "27 negatives of 27 wanted for 3 questions" in out
    assert re.search(r"the guard rejected are (not )?more similar to the question", " ".join(out.split()))
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name


def test_a_run_over_it_is_scored_and_asked_as_its_source_and_adds_its_negatives(folder, ragbed, serve, tmp_path):
    server = serve(lambda _: "<Answer>Oslo [1]</Answer>")
    summary = ragbed.json(
        "run", "mined", folder, "--model", f"{server.url}#m", "--condition", "provided", "--condition", "gold",
        "--perturbation", "none", "--perturbation", "negatives@5", "--out", tmp_path)
    assert len(server.requests) == 12
    config = (tmp_path / "mined" / "config.yaml").read_text()
    assert "rules:\n- open" in config
    assert summary["columns"] == list(HotpotQa.scheme.columns)
    prompts = "\n".join(body["messages"][1]["content"] for body, _ in server.requests)
    for question in MinedBenchmark(path=str(folder)).load().questions:
        contents = {chunk.id: chunk.content for chunk in question.chunks}
        assert all(contents[id] in prompts for id in question.interleave_mined()[:5])


def test_too_few_candidates_are_said_and_counted(tmp_path, ragbed):
    out = tmp_path / "short"
    status, said, _ = ragbed("negatives", "hotpotqa", SOURCE, "--limit", 1, *MINERS, "--per-question", 20, "--out", out)
    assert status == 0
    manifest = json.loads((out / "manifest.json").read_text())
    (one,) = manifest["short"].values()
    assert one["wanted"] == 28
    assert one["kept"] + one["rejected"] == 8
    assert "1 question got fewer than wanted" in said
    assert f"{one['kept']} of 28, {one['rejected']} rejected; no candidate is left" in said


def test_what_was_given_may_stay(tmp_path, ragbed):
    ragbed("negatives", "hotpotqa", SOURCE, "--limit", 2, *MINERS, "--per-question", 3, "--keep",
           "--out", tmp_path / "k")
    for before, after in zip(HotpotQa(path=str(SOURCE), limit=2).load().questions,
                             MinedBenchmark(path=str(tmp_path / "k")).load().questions, strict=True):
        assert after.provided == before.provided
        assert len(after.negatives) == 3


def test_candidates_may_come_from_an_index_past_the_gold_page(tmp_path, ragbed):
    pages = tmp_path / "pages"
    pages.mkdir()
    for name, text in {"terms.txt": "The Esk warranty lasts 24 months.", "old.txt": "The Esk warranty was short.",
                       "shop.txt": "The Esk shop opens at nine.", "river.txt": "The Esk is a river."}.items():
        (pages / name).write_text(text)
    questions = tmp_path / "own.jsonl"
    questions.write_text(json.dumps({"question": "How long is the Esk warranty?", "answer": "24 months",
                                     "gold_documents": ["terms.txt"]}) + "\n")
    assert ragbed("index", pages, "--out", tmp_path / "idx")[0] == 0
    status, _, err = ragbed("negatives", "jsonl", questions, "--index", tmp_path / "idx", *MINERS,
                            "--per-question", 1, "--fill", 3, "--out", tmp_path / "m")
    assert status == 0, err
    made = MinedBenchmark(path=str(tmp_path / "m")).load()
    (question,) = made.questions
    sources = [made.documents[chunk.document].source for chunk in question.provided]
    assert sorted(sources)[-1] == "terms.txt"
    assert len(sources) == 3
    (further,) = question.negatives
    assert made.documents[further.document].source not in {*sources, "terms.txt"}
    (decision,) = lines(tmp_path / "m" / "decisions.jsonl")
    assert (decision["reason"], decision["content"]) == ("gold_document", "The Esk warranty lasts 24 months.")


@pytest.mark.parametrize("name", ["questions.jsonl", "chunks.jsonl", "documents.jsonl", "manifest.json"])
def test_a_file_that_was_changed_is_refused(folder, tmp_path, name):
    shutil.copytree(folder, tmp_path / "m")
    path = tmp_path / "m" / name
    path.write_text(path.read_text(encoding="utf-8").replace("1", "2", 1), encoding="utf-8")
    with pytest.raises(BenchmarkError, match=f"{name}: missing or damaged"):
        MinedBenchmark(path=str(tmp_path / "m")).load()


def test_what_cannot_be_mined_is_one_line(tmp_path, ragbed):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    ragbed.refuses("negatives", "hotpotqa", SOURCE, "--out", tmp_path / "full", says=["not empty"])
    ragbed.refuses("negatives", "hotpotqa", SOURCE, "--miner", "near", "--out", tmp_path / "n",
                   says=["unknown miner 'near'", "same_document"])
    ragbed.refuses("negatives", "hotpot", SOURCE, "--out", tmp_path / "n", says=["unknown benchmark 'hotpot'"])
    ragbed.refuses("negatives", "hotpotqa", SOURCE, "--reranker", "near", "--out", tmp_path / "n", says=["reranker"])
    ragbed.refuses("run", "mined", tmp_path / "full", says=["not a mined benchmark", "ragbed negatives"])
    own = tmp_path / "own.jsonl"
    own.write_text('{"question": "Why?"}\n')
    ragbed.refuses("negatives", "jsonl", own, "--out", tmp_path / "n", says=["have no chunks", "--index DIR"])
