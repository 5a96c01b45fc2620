"""The papers' result tables: what is printed there, and what of it is consistent."""
import re

import pytest
from each_case import each
from stored import result

from ragbed.documents import SettingsError
from ragbed.experiments import METRICS, Question, aggregate
from ragbed.experiments.guests.datasets.published_tables import list_published, load_published, match_figures

CELL = {"id": "a", "reasoning": "direct", "rules": "grounded", "condition": "provided", "perturbation": None,
        "show": "question", "exemplars": 0}
# The rows of each table, what of a run stands beside it, and what of another that measures something else.
CHAINS, SHOWN = {"reasoning": "chain_of_thought"}, {"show": "sub_questions"}
TABLES = {
    "beir_scifact": (2, {"condition": "retrieved"}, {"condition": "provided"}),
    "crest_3": (10, CHAINS, {"reasoning": "direct"}), "crest_4": (10, CHAINS, {"condition": "retrieved"}),
    "crest_5": (5, CHAINS, {"perturbation": "drop_gold"}),
    "crest_6": (20, {"reasoning": "least_to_most"}, {"exemplars": 1}),
    "mrceval_2": (28, {}, {"condition": "closed-book"}), "mdbench_1": (7, {}, {"perturbation": "shuffle"}),
    "mdbench_2": (5, {}, {"condition": "closed-book"}), "mdbench_3": (2, {}, {"exemplars": 1}),
    "detectiveqa_6": (10, {"condition": "full"}, {"condition": "gold"}),
    "detectiveqa_8": (4, {"condition": "full"}, {"perturbation": "shuffle"}),
    "mrke_3": (5, SHOWN, {"show": "question"}), "mrke_4": (5, {}, {"show": "sub_questions"}),
    "mrke_5": (5, SHOWN, {"condition": "closed-book"}), "mrke_7": (5, {}, {"condition": "closed-book"}),
    "mrke_8": (5, {}, {"perturbation": "drop_gold"})}


def number(text):
    return float(text.removesuffix("%"))


def test_there_is_every_table_with_all_its_rows():
    assert {name: len(load_published(name).rows) for name in list_published()} == {
        name: rows for name, (rows, *_) in TABLES.items()}
    for name in TABLES:
        table = load_published(name)
        assert (table.name, bool(table.n and table.layout and table.caption)) == (name, True)
        assert all(re.fullmatch(r"-?\+?\d+(\.\d+)?%?", value) for one in table.rows for value in one.values)
        assert len({(one.model, one.method) for one in table.rows}) == len(table.rows)
        assert {len(one.values) for one in table.rows} == {len(table.columns)}


@each(("table", "model", "method", "column", "printed"), [
    ("crest_3", "Qwen2.5-3B-Instruct", None, "English: unified score", "0.1756"),
    ("crest_3", "o4-mini", None, "Korean: refusal accuracy", "23.01%"),
    ("crest_4", "GPT-4.1", None, "Korean: recall", "92.73%"),
    ("crest_5", "GPT-4o", None, "ComplexQA: refusal accuracy", "34.01%"),
    ("crest_6", "gpt-4o", "least to most", "unified score", "0.4502"),
    ("crest_6", "Qwen2.5-32B-Instruct", "plan and solve", "wrong", "23.77%"),
    ("mrceval_2", "Mistral-7B-Instruct-v0.3", None, "entity", "57.5"),
    ("mrceval_2", "Gemini-2.0-flash-lite-preview-02-05", None, "inconsistent", "23.5"),
    ("mrceval_2", "Qwen-max-2025-01-25", None, "overall", "59.4"),
    ("mdbench_1", "GPT-4o", None, "zero-shot, chain of thought", "62.1"),
    ("mdbench_2", "LLaMA-3-8B", None, "difference", "+5.2"),
    ("mdbench_3", "GPT-3.5", None, "shuffled", "39.3"),
    ("detectiveqa_6", "GLM3-6B-128k", None, "context and question: G.M.", "33.63"),
    ("detectiveqa_6", "Claude3-Opus-200k", None, "win rate", "94.61"),
    ("detectiveqa_8", "Qwen1.5-7B-8k", None, "question only: answer", "35.33"),
    ("detectiveqa_8", "Qwen1.5-72B-32K", None, "win rate", "76.51"),
    ("mrke_3", "GEMINI-pro", None, "3 hops: joint EM", "8.70"),
    ("mrke_4", "Bing Chat", None, "4 hops: F1", "48.5"),
    ("mrke_5", "Bing Chat", None, "w w c", "5.0"),
    ("mrke_7", "GPT-3.5", None, "sub-question 3: EM", "29"),
    ("mrke_8", "GPT-4", None, "sub-question 4: F1", "56.3")])
def test_values_are_as_printed(table, model, method, column, printed):
    place = [one.name for one in load_published(table).columns].index(column)
    assert [one.values[place] for one in load_published(table).rows
            if one.model == model and method in (None, one.method)] == [printed]


def test_crests_rates_sum_to_all_and_citation_f1_is_the_harmonic_mean():
    for name in ("crest_3", "crest_5", "crest_6"):
        for one in load_published(name).rows:
            for at in range(0, len(one.values), 5):
                assert sum(map(number, one.values[at + 1:at + 4])) == pytest.approx(100, abs=0.021)
    for one in load_published("crest_4").rows:
        for at in (0, 3):
            precision, recall, f1 = map(number, one.values[at:at + 3])
            assert 2 * precision * recall / (precision + recall) == pytest.approx(f1, abs=0.011)


def test_columns_name_metrics_that_exist():
    known = {column.metric for name in TABLES for column in load_published(name).columns} - {None}
    assert {name.partition("@")[0] for name in known} <= METRICS.keys()


def test_an_unknown_table_is_refused_with_the_known_ones():
    with pytest.raises(SettingsError, match="unknown published table 'crest_9'; there are: beir_scifact, crest_3, "):
        load_published("crest_9")


def question(id, **tags):
    return Question(id, "?", ("A",), answerable=True,
                    tags={name: (value,) if isinstance(value, str) else value for name, value in tags.items()})


@pytest.mark.parametrize("table", TABLES)
def test_own_figures_stand_only_beside_what_measures_the_same(table):
    _, right, wrong = TABLES[table]
    every = question("q", language=("en", "ko"), difficulty_type=("SimpleQA", "ComplexQA"), hops=("2", "3", "4"),
                     version=("edited", "original"), task="Context", subtask="entity")
    scores = {name: 1.0 for name in METRICS if name != "sub_em"} | {f"sub_em@{hop}": 1.0 for hop in (1, 2)}
    scores |= {"sub_f1@1": 1.0, "lucky": 0.0, "ndcg@10": 1.0}
    results = [result("a", "q", scores)]
    cell = CELL | right | {"metrics": aggregate(results, "as-published", 0)}
    def figures(changes):
        return match_figures(load_published(table), cell | changes, results, {"q": every}, "as-published", 0)
    assert any(figures({}))
    assert not any(figures(wrong))


def test_a_runs_own_figures_are_over_the_questions_and_cells_of_the_column():
    questions = {name: question(name, subtask=task, task="Context")
                 for name, task in (("q1", "entity"), ("q2", "entity"), ("q3", "event"))}
    results = [result("a", name, {"accuracy": score}) for name, score in (("q1", 1.0), ("q2", 0.0), ("q3", 1.0))]
    cell = CELL | {"rules": "choice", "metrics": aggregate(results, "corrected", 0)}
    found = match_figures(load_published("mrceval_2"), cell, results, questions, "corrected", 0)
    assert [found[at]["mean"] if found[at] else None for at in (0, 1, 2, 13, 14, 16)] == [
        0.5, None, 1.0, pytest.approx(2 / 3), None, pytest.approx(2 / 3)]
    closed = cell | {"condition": "closed-book"}
    of_conditions = match_figures(load_published("detectiveqa_6"), closed, results, questions, "corrected", 0)
    assert [one["mean"] if one else None for one in of_conditions] == [
        None, None, None, pytest.approx(2 / 3), None, None, None]
