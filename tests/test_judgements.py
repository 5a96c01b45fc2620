"""What nobody judged: judged@k and bpref against hand-computed figures and ir_measures, and a model's grades of it."""
import random
from pathlib import Path

import ir_measures
import pytest
from ir_measures import Bpref, Judged, nDCG

from ragbed.experiments import Scored, score
from ragbed.experiments.metrics import judgements_at

TREC = Path(__file__).parent / "data" / "trec"
HELPS = {"Nine kinds of crab": "Grade: 3", "A ferry": "Grade: 1", "Bells": "Grade: 0", "The northern": "Grade: 2",
         "No growth": "Grade: 0"}


def scored(ranked, qrels):
    """A ranking of documents by their names, of which some are judged."""
    gold = [name for name, grade in qrels.items() if grade > 0]
    hits = {number: {gold.index(name)} if name in gold else () for number, name in enumerate(ranked, start=1)}
    return Scored("searched", True, hits=hits, gold_total=len(gold), searched=True, names=dict(enumerate(ranked, 1)),
                  grades=tuple(qrels[name] for name in gold), judged={name: 0 for name, of in qrels.items() if not of})


def test_judged_and_bpref_by_hand():
    # a and c are relevant, b and z of no use; b stands before both, so each counts 1 - 1/2, over a gold of two.
    found = scored("xbayc", {"a": 1, "b": 0, "c": 2, "z": 0})
    assert score(found, groups=("judgements",), wanted=["judged@3"]) == {"judged@10": 3 / 5, "bpref": 0.5,
                                                                          "judged@3": 2 / 3}
    assert score(scored("ab", {"a": 1, "b": 0, "c": 1}), groups=("judgements",)) == {"judged@10": 1.0, "bpref": 0.5}
    assert score(scored("xa", {"a": 1}), groups=("judgements",)) == {"judged@10": 0.5, "bpref": 1.0}
    assert score(scored("", {"a": 1}), groups=("judgements",)) == {"judged@10": 0.0, "bpref": 0.0}
    assert score(scored("a", {"b": 0}), groups=("judgements",)) == {"judged@10": 0.0, "bpref": None}


def test_figures_are_those_of_ir_measures_over_the_same_qrels_and_run():
    rng, documents = random.Random(0), [f"d{number}" for number in range(300)]
    measures = {Judged @ 1: "judged@1", Judged @ 10: "judged@10", Judged @ 200: "judged@200", Bpref: "bpref",
                nDCG @ 10: "ndcg@10"}
    for query in range(40):
        judged = {one: rng.choice([0, 0, 0, 1, 2, 3]) for one in rng.sample(documents, rng.randint(2, 80))}
        judged[documents[query]] = 1
        ranked = rng.sample(documents, 150)
        item = scored(ranked, judged)
        run = {"q": {document: float(-rank) for rank, document in enumerate(ranked)}}
        for measure, value in ir_measures.calc_aggregate(list(measures), {"q": judged}, run).items():
            assert judgements_at(item, measures[measure]) == pytest.approx(value, abs=1e-12), measure


def test_runs_of_other_programs_have_them_where_qrels_say_what_is_of_no_use(ragbed, tmp_path):
    run = tmp_path / "theirs.run"
    run.write_text("301 Q0 18670 1 9 x\n301 Q0 4983 2 8 x\n301 Q0 5836 3 7 x\n302 Q0 7912 1 9 x\n")
    made = ragbed.json("evaluate-retrieval", "--qrels", TREC / "qrels.txt", "--run", run)
    found = made["lines"][0]["metrics"]
    # Of the gold of 301 one is found, after the one of no use: 0 of 2; of that of 302 one of two.
    assert (found["bpref"]["mean"], found["judged@10"]["mean"]) == (pytest.approx((0 + 1 / 2) / 2),
                                                                   pytest.approx((2 / 3 + 1) / 2))


def graded(body):
    passage = body["messages"][0]["content"].partition("<passage>\n")[2]
    return next(grade for words, grade in HELPS.items() if words in passage.partition("</passage>")[0])


def settings(town, server, **changes):
    return town.config(server.url, benchmark={"kind": "trec", "path": str(TREC)}, models="none", name="graded",
                       reasoning="search_only", conditions="retrieved", layout="documents_first",
                       retriever=[{"kind": "dense", "k": 5}, {"kind": "bm25", "k": 5}],
                       grader={"model": f"{server.url}#g", **changes})


def test_unjudged_passages_are_graded_by_a_model_for_all_cells_together_and_people_have_the_first_word(
        serve, town, ragbed):
    server = serve(graded)
    made = ragbed.json("run", settings(town, server))
    # Of five documents 301 has three judged and 302 one; BM25 finds no others.
    assert len(server.requests) == 2 + 4
    town.run = town.run.with_name("graded")
    grades = {(one["result"]["question"], passage["document"]): passage["grade"] for one in town.records()
              for passage in one["result"]["evidence"] if "grade" in passage}
    assert grades == {("301", "5836"): 3, ("301", "7912"): 0, ("302", "5836"): 3, ("302", "18670"): 1,
                      ("302", "4983"): 2, ("302", "33370"): 0}
    people = {"301": {"4983": 2, "33370": 1, "18670": 0}, "302": {"7912": 1, "MISSING-1": 1}}
    for cell in made["cells"]:
        results = [one["result"] for one in town.records() if one["result"]["cell"] == cell["id"]]
        run = {one["question"]: {passage["document"]: -float(rank) for rank, passage in enumerate(one["evidence"])}
               for one in results}
        found = ir_measures.calc_aggregate([nDCG @ 10], people, run)  # the run's figures use only people's judgements
        assert cell["metrics"]["ndcg@10"]["mean"] == pytest.approx(found[nDCG @ 10])
    assert ragbed("verify", town.run)[0] == 0
    assert "No figure differs from the run's." in ragbed("rescore", town.run)[1]
    assert ragbed("cassette", "export", town.run, "--out", town.folder / "c.gz")[0] == 0
    again = ragbed.json("run", "--replay", town.folder / "c.gz", "--out", town.folder / "replayed")
    assert again["results"] == made["results"]
    assert len(server.requests) == 6


def test_only_as_many_passages_of_a_question_are_graded_as_the_depth_says(serve, town, ragbed):
    server = serve(graded)
    assert ragbed("run", settings(town, server, depth=2))[0] == 0
    town.run = town.run.with_name("graded")
    places = [place for one in town.records() for place, passage in enumerate(one["result"]["evidence"])
              if "grade" in passage]
    assert {*places} == {1}  # people judged what is first


def test_a_grade_that_cannot_be_read_is_none_and_a_call_that_fails_is_told_and_ends_no_question(serve, town, ragbed):
    silent = serve(lambda body: "It is fine.")
    town.run = town.run.with_name("graded")
    status, out, err = ragbed("run", settings(town, silent))
    assert status == 0
    assert "7 of 7 passages could not be graded" in err
    assert "Unjudged passages" not in out
    failing = serve(lambda body: {"status": 400, "text": "no"})
    assert ragbed("run", settings(town, failing), "--fresh")[0] == 0
    notes = [one["result"]["notes"] for one in town.records()]
    assert notes.count(("not_graded:http_400",)) == 3
    assert all("grade" not in passage for one in town.records() for passage in one["result"]["evidence"])


def test_the_guard_leaves_out_what_a_model_grades_two_or_three(serve, ragbed, tmp_path):
    server = serve(graded)
    data = Path(__file__).parent / "data" / "trec"
    made = ragbed.json("negatives", "trec", data, "--out", tmp_path / "mined", "--miner", "bm25", "--miner", "dense",
                       "--per-question", 3, "--fill", 0, "--reranker", f"{{kind: judge, model: '{server.url}#g'}}")
    assert made["candidates"]["relevance"] > 0
    decisions = (tmp_path / "mined" / "decisions.jsonl").read_text()
    assert '"reason":"relevance","figures":{"grade":3.0}' in decisions
    assert '"grade":1.0' not in decisions
    assert f"relevance judge {server.url}#g: " in (tmp_path / "mined" / "manifest.json").read_text()
