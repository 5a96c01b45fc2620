"""Units of inference, the headline of your own questions, and intervals that agree with tests."""
import json
import re
from pathlib import Path

import numpy as np
import pytest
from factored import Row, cells, effects_of

from ragbed.documents import SettingsError
from ragbed.experiments import Gold, Question, open_run, run
from ragbed.experiments.benchmarks import OwnQuestions
from ragbed.experiments.formatting import verdict
from ragbed.experiments.metrics import Scored, aggregate, score
from ragbed.experiments.metrics.intervals import match_test
from ragbed.experiments.metrics.scoring import choose_headline
from ragbed.experiments.statistics import check_unit, cluster_questions, compare, note_correlation, pair_scores
from ragbed.experiments.statistics.testing import correlate_within
from ragbed.strategies.types import Turn


def question(id, *documents, text="?", turns=(), **tags):
    return Question(id, text, ("x",), True, gold=tuple(Gold(name) for name in documents),
                    turns=tuple(Turn(one, "yes") for one in turns),
                    tags={name: (value,) for name, value in tags.items()})


def over_documents(documents, each=8, **tags):
    return [question(f"{document}-{at}", f"d{document}", **tags) for document in range(documents) for at in range(each)]


def flipped(asked, unit="question"):
    of = cluster_questions(asked, unit).of
    wrong, right = ({one.id: Row({"right": value}) for one in asked} for value in (0.0, 1.0))
    return compare([pair_scores("right", wrong, right, of)])[0]


def groups_of(asked, unit="question"):
    found = {}
    for name, cluster in cluster_questions(asked, unit).of.items():
        found.setdefault(cluster, set()).add(name)
    return [group for group in found.values() if len(group) > 1]


def test_questions_are_the_unit_however_many_documents_they_are_over():
    assert [(one.test, one.clusters, one.p) for one in map(flipped, map(over_documents, (5, 6)))] == [
        ("McNemar", 40, 0.0), ("McNemar", 48, 0.0)]  # 2 / 2^40, rounded
    assert cluster_questions(over_documents(5)).note == ""
    assert [(one.test, one.clusters, one.p) for one in (flipped(over_documents(n), "document") for n in (5, 6))] == [
        ("permutation", 5, 2 / 2**5), ("permutation", 6, 2 / 2**6)]


def test_questions_that_belong_together_are_one_unit():
    asked = [question("a", text="Who?"), question("b", text="When?", turns=["Who?"]),
             question("c", text="Where?", turns=["Who?", "When?"]), question("d", text="Why?"),
             question("e", conversation="1"), question("f", conversation="1"), question("g", conversation="2"),
             question("h", item="7"), question("i", item="7"), question("j", pair="7"), question("k", pair="7"),
             question("l"), question("m", paraphrase="l"), question("n", twin="o"), question("o"), question("p", t="7")]
    together = [{"a", "b", "c"}, {"e", "f"}, {"h", "i"}, {"j", "k"}, {"l", "m"}, {"n", "o"}]
    assert groups_of(asked) == together
    assert cluster_questions(asked).note.startswith("16 questions are 9 units: intervals and tests count")
    assert groups_of([*asked, question("q", t="7")], "t") == [*together, {"p", "q"}]


def test_documents_as_the_unit_say_for_what_the_figures_hold_and_how_many_are_needed():
    found = cluster_questions([*over_documents(5), question("x")], "document")
    # a document of 8 questions has the variance 0.25 x (0.8 / 8 + 0.2), and 0.075 x (2.8 / 0.1)^2 is 58.8
    assert found.notes(1) == [
        "The unit is the document: intervals and tests generalise to new documents if these 5 are typical. 1 "
        "questions without one are units of their own. To detect a difference of 0.10 between two cells (80 % power), "
        "about 59 documents are needed, if the correlation within them is 0.2.",
        "5 units are too few for a significant difference: 1 comparison needs at least 6."]
    assert found.notes(10)[1].endswith("10 comparisons need at least 9.")  # 2^(1 - 8) x 10 is 0.08
    assert len(cluster_questions(over_documents(9), "document").notes(10)) == 1
    assert "new groups by topic" in cluster_questions(over_documents(2, topic="x"), "topic").note


@pytest.mark.parametrize(("asked", "unit", "message"), [
    (over_documents(2, topic="x"), "topik", r"no question has the tag 'topik'; did you mean 'topic'\? choose one of: "
                                            "question, document, topic"),
    ([question("a", "d"), question("b", "e")], "document", "every question has its own document"),
    ([question("a", t="1"), question("b", t="2")], "t", "every question has its own t"),
    (over_documents(1), "document", "all questions have the same document"),
    ([question("a", t="1"), question("b", t="1")], "document", "no question names a gold document")])
def test_a_unit_that_cannot_act_is_rejected(asked, unit, message):
    with pytest.raises(SettingsError, match=message):
        check_unit(asked, unit)


def test_the_intraclass_correlation_is_that_of_the_analysis_of_variance():
    of = {"a": "x", "b": "x", "c": "y", "d": "y"}
    # means 2 and 5: between 9 with one degree of freedom, within 4 / 2 = 2; (9 - 2) / (9 + 2)
    assert correlate_within({"a": 3, "b": 1, "c": 6, "d": 4}, of)[0] == pytest.approx(7 / 11)
    assert correlate_within({"a": 1, "b": 1, "c": 0, "d": 0}, of) == (1.0, 0.0)
    assert correlate_within({"a": 1, "b": 0, "c": 1, "d": 0}, of)[0] == -1.0
    assert correlate_within({"a": 1, "c": 0}, of) is correlate_within({"a": 1, "b": 1}, of) is None
    grouped = cluster_questions(over_documents(6))
    alike = {id: float(id < "3") for id in grouped.of}
    assert "intraclass correlation 1.00" in note_correlation([alike], grouped)[0]
    assert note_correlation([{id: float(id[-1] in "0123") for id in grouped.of}], grouped) == []
    assert note_correlation([alike], cluster_questions(over_documents(6), "document")) == []


def test_the_interval_excludes_0_exactly_if_the_test_finds_a_difference():
    rng = np.random.default_rng(0)
    for _ in range(150):
        n, share = int(rng.integers(2, 40)), rng.random()
        metric = ["right", "f1", "unified"][rng.integers(3)]
        values = rng.integers(0, 2, (2, n)).astype(float) if metric == "right" else rng.random((2, n)).round(1)
        values[1] = np.where(rng.random(n) < share, values[0], values[1])
        split = rng.random(n) < 0.8
        of = {f"q{at}": str(at // int(rng.integers(1, 4))) for at in range(n)} if rng.random() < 0.5 else {}
        sides = [{f"q{at}": Row({metric: float(one)}, bool(split[at])) for at, one in enumerate(side)}
                 for side in values]
        made, = compare([pair_scores(metric, *sides, of)])
        if made.low is not None:
            excluded = made.low > 0 or made.high < 0
            assert excluded == (made.p < 0.05) == verdict(made).startswith("significantly")
            assert made.low <= made.difference <= made.high


def test_the_test_based_bound():
    # p 0.01 has the quantile 2.5758, and 1 - 1.95996 / 2.5758 is 0.2391
    assert match_test(0.5, (-0.1, 0.9), 0.01) == (pytest.approx(0.1195, abs=1e-4), 0.9)
    assert match_test(-0.5, (-0.9, 0.1), 0.01) == (-0.9, pytest.approx(-0.1195, abs=1e-4))
    assert match_test(0.5, (0.1, 0.9), 0.01) == (0.1, 0.9)
    assert match_test(0.1, (0.05, 0.2), 1.0) == (-0.2, 0.2)  # no farther from 0 than the other bound
    assert match_test(0.1, (-0.1, 0.2), None) == (-0.1, 0.2)


def test_contrasts_of_effects_agree_with_their_tests():
    rng = np.random.default_rng(1)
    for _ in range(10):
        values = rng.integers(0, 2, (4, 9)).astype(float)
        found = effects_of(cells(reasoning=["a", "b"], condition=["c", "d"]), values, "em")
        for one in (one for factor in found["factors"] for one in factor["contrasts"] if one["p"] is not None):
            assert (one["low"] > 0 or one["high"] < 0) == (one["p"] < 0.05)


def test_right_counts_right_answers_and_right_refusals():
    def right(item):
        return score(item)["right"]

    assert [right(Scored("answered", True, "x", answers=("x",), grade=grade)) for grade in (
        "Correct", "Partially Correct", "Wrong", None)] == [1, 0, 0, None]
    assert right(Scored("refused", True, answers=("x",))) == right(Scored("answered", False, "x")) == 0
    assert right(Scored("refused", False)) == 1
    assert right(Scored("refused", False, rules="open")) is right(Scored("answered", True, "x")) is None
    options = (("A", "one"), ("B", "two"))
    assert [right(Scored("answered", True, text, answers=("B",), options=options, grade="Wrong"))
            for text in ("B", "A")] == [1, 0]


def test_the_mean_over_all_questions_is_not_moved_by_two():
    # 18 of 26 are right, and neither of 2 unanswerable questions is refused
    rows = [Row({"right": float(at < 18), "unified": float(at < 18)}) for at in range(26)]
    found = aggregate([*rows, *[Row({"right": 0.0, "unified": 0.0}, False)] * 2])
    assert found["right"]["mean"] == pytest.approx(18 / 28)
    assert (found["right"]["low"], found["right"]["high"]) == (pytest.approx(0.458, abs=1e-3), pytest.approx(0.793,
                                                                                                    abs=1e-3))
    assert found["unified"]["mean"] == pytest.approx(9 / 26)


def test_a_headline_is_a_metric_that_the_questions_have():
    scheme = OwnQuestions(path="own").scheme_of([question("a")])
    assert scheme.headline == "right"
    assert choose_headline(scheme, "f1").columns == ("f1", *scheme.columns)
    assert choose_headline(scheme, "citation_f1").columns == ("citation_f1", *scheme.columns[:-1])
    with pytest.raises(SettingsError, match=r"unknown metric 'righ'; did you mean 'right'\?"):
        choose_headline(scheme, "righ")
    with pytest.raises(SettingsError, match="headline: ndcg@10 is not computed for these questions; choose from: uni"):
        choose_headline(scheme, "ndcg@10")


def own_run(town, serve, **settings):
    asked = town.own(*({"id": str(at), "question": f"How many people live in town {at}?", "answer": f"{at * 111}",
                        "gold_documents": [f"d{at % 4}"], **({"answerable": False} if at == 11 else {})}
                       for at in range(12)))
    return town.config(serve(town.reply).url, benchmark=asked, conditions="closed-book", rules="grounded", name="town",
                       reasoning=["direct", "plan_and_solve"], **settings)


def test_the_mean_of_the_frames_headline_is_the_figure_of_the_table(serve, town):
    for settings in (own_run(town, serve), town.config(serve(town.reply).url, "crest", name="crest"),
                     town.config(serve(town.reply).url, "published", name="published", scoring="as-published")):
        with run(settings) as finished:
            metric, frame = finished.summary["columns"][0], finished.frame()
            means = frame.groupby("cell_name")["headline"].mean()
            for name, row in finished.cells.items():
                assert means[name] == pytest.approx(row["metrics"][metric]["mean"])
    assert metric == "unified"


def test_the_docs_example_gives_the_tables_numbers(serve, town, monkeypatch):
    page = (Path(__file__).parent.parent / "docs" / "experiments.md").read_text(encoding="utf-8")
    lines = re.findall(r"^frame.*$", page, re.MULTILINE)
    with run(own_run(town, serve)) as finished:
        cells = finished.cells
    town.run.rename(town.run.parent / "matrix")
    monkeypatch.chdir(town.folder)
    names = {"open_run": open_run}
    exec(lines[0], names)
    means, table = (eval(line, names) for line in lines[1:])
    assert dict(means) == {name: pytest.approx(row["metrics"]["right"]["mean"]) for name, row in cells.items()}
    assert dict(table["closed-book"]) == pytest.approx(dict(means))


def test_a_run_by_document_says_so_and_compare_takes_another_unit(serve, town, ragbed):
    assert ragbed("run", own_run(town, serve, unit="document", headline="correct"))[0] == 0
    with open_run(town.run) as opened:
        summary = opened.summary
    assert summary["comparisons"]["metric"] == "correct"
    assert summary["comparisons"]["pairs"][0]["clusters"] == 4
    assert any(note.startswith("The unit is the document") for note in summary["notes"])
    found = json.loads(ragbed("compare", town.run, "--unit", "question", "--json")[1])
    assert found["comparisons"][0]["clusters"] == found["comparisons"][0]["n"] == 11
    assert "did you mean 'document'?" in ragbed("compare", town.run, "--unit", "documents")[2]
    assert ragbed("effects", town.run, "--unit", "topic")[0] == 2
