"""What each condition shows, with and without a perturbation: of questions that bring chunks, tables and documents."""
import json
import re
from pathlib import Path

import pytest

from ragbed.documents import Chunk, Document, SettingsError
from ragbed.experiments import Benchmark, Gold, Plan, Question, check_settings
from ragbed.experiments.conditions import Perturbation
from ragbed.experiments.running.checks import check_conditions
from ragbed.experiments.running.gold import Perturber

DATA = Path(__file__).parent / "data"
A, B = (Chunk(name, "document", "plain", 0, 1, name) for name in "ab")


def passages(*texts):
    return tuple(Chunk(f"{text} id", f"{text} doc", "plain", 0, len(text), text) for text in texts)


def asked(name, *texts, gold=(), **fields):
    """A question over passages of these texts, of which some are gold."""
    given = passages(*texts)
    labels = tuple(Gold(one.document, one.id) for one in given if one.content in gold)
    return Question(name, f"{name}?", fields.pop("answers", ("Oslo",)), True, gold=labels, provided=given, **fields)


def shown(benchmark, name, question=0, seed=0, chunks=None, more=()):
    """Texts and notes of a question's given chunks after a perturbation."""
    question = benchmark.questions[question]
    changed = Perturber(benchmark, lambda document: document).changed(
        Perturbation.parse(name), question, question.provided if chunks is None else chunks, question.gold, seed, more)
    return [chunk.content for chunk in changed.chunks], list(changed.notes)


TWO = Benchmark("two", (asked("one", "a", "b", "c", gold=("b",), negatives=passages("n")),
                        asked("two", "d", "it is Oslo", "a", "e")))


def test_negatives_are_the_benchmarks_own_first_then_unshown_ones_then_other_questions_that_do_not_tell():
    gold = [chunk for chunk in TWO.questions[0].provided if chunk.content == "b"]
    assert shown(TWO, "negatives@1") == (["a", "b", "c", "n"], [])
    assert shown(TWO, "negatives@3", chunks=gold) == (["b", "n", "a", "c"], [])
    texts, notes = shown(TWO, "negatives@9")
    assert (texts[:4], sorted(texts[4:]), notes) == (["a", "b", "c", "n"], ["d", "e"], ["negatives:3 of 9"])
    texts, notes = shown(TWO, "negatives@1", question=1)
    assert len(texts) == 5
    assert texts[4] in {"b", "c", "n"}


def test_negatives_come_out_of_an_index_where_the_questions_bring_none():
    alone = Benchmark("alone", (asked("one", answers=("Oslo",)),))
    pages = passages("Oslo it is", "Rome", "Bern", "oslo!")
    texts, notes = shown(alone, "negatives@5", chunks=passages("Rome"), more=pages)
    assert (texts, notes) == (["Rome", "Bern"], ["negatives:1 of 5"])


def test_a_negative_is_no_part_of_what_is_shown_and_not_of_the_questions_own_documents():
    novel = Document("novel", "novel", "", "", "one two three four five")
    parts = [Chunk.of(novel, "plain", start, start + 4) for start in (0, 4, 8, 14)]
    first = Question("first", "?", ("Oslo",), True, pool=tuple(parts[:2]), whole=(Chunk.of(novel, "plain", 0, 8),))
    second = Question("second", "?", ("Oslo",), True, pool=(*parts, *passages("another novel")))
    benchmark = Benchmark("novels", (first, second), {"novel": novel})
    assert shown(benchmark, "negatives@4", chunks=first.whole)[0][1:] == ["another novel"]


def test_the_order_is_the_questions_own_and_the_seeds():
    many = Benchmark("many", tuple(asked(name, *"abcdefgh") for name in ("one", "two")))
    orders = [shown(many, "shuffle", question, seed)[0] for question, seed in ((0, 0), (0, 0), (1, 0), (0, 1))]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0] != orders[3]
    assert sorted(orders[0]) == list("abcdefgh")


def settings(**fields):
    return check_settings({"name": "x", "models": "http://h/v1#m", "benchmark": {"kind": "crest", "path": "x"},
                           **fields}, "x")


def named(benchmark, **fields):
    return [(cell.condition, cell.perturbation) for cell in Plan.of(settings(**fields), benchmark).cells]


def checked(benchmark, **fields):
    chosen = settings(**fields)
    check_conditions(chosen, Plan.of(chosen, benchmark).cells, benchmark)


def test_what_changes_nothing_under_a_condition_is_no_cell_of_its_own():
    every = ["none", "shuffle", "gold_at@2", "drop_gold", "unnumbered", "drop_gold+shuffle+unnumbered"]
    assert named(TWO, conditions=["closed-book", "gold"], perturbations=every) == [
        ("closed-book", None), ("gold", None), ("gold", "shuffle"), ("gold", "drop_gold"),
        ("gold", "unnumbered"), ("gold", "unnumbered+drop_gold")]
    single = Benchmark("single", (asked("one", "a", gold="a"),))
    assert named(single, perturbations=["shuffle", "gold_at@1", "shuffle+negatives@2"]) == [
        ("provided", None), ("provided", "shuffle+negatives@2")]
    unlabelled = Benchmark("unlabelled", (asked("one", "a", "b"),))
    assert named(unlabelled, perturbations=["drop_gold", "gold_at@1", "shuffle"]) == [
        ("provided", None), ("provided", "shuffle")]
    assert named(TWO, conditions="retrieved", retrieval="none", rules="open",
                 perturbations=["shuffle", "negatives@2", "unnumbered"]) == [
        ("retrieved", None), ("retrieved", "unnumbered")]


@pytest.mark.parametrize(("benchmark", "fields", "says"), [
    (TWO, {"perturbations": "table"}, "two has no tables"), (TWO, {"conditions": "full"}, "no whole documents"),
    (Benchmark("b", (asked("one", "a"),)), {"conditions": "gold"}, "has gold evidence"),
    (Benchmark("b", (asked("one"),)), {}, "has no chunks"),
    (Benchmark("b", (asked("one"),)), {"conditions": "retrieved"}, "no corpus to index"),
    (Benchmark("b", (asked("one"),), corpus="pages"), {"conditions": "full"}, "names a document to show")])
def test_a_benchmark_without_what_is_to_be_shown_is_refused_in_one_line(benchmark, fields, says):
    with pytest.raises(SettingsError, match=says) as refused:
        checked(benchmark, **fields)
    assert "\n" not in str(refused.value)


def test_questions_without_what_others_have_are_no_hindrance():
    mixed = Benchmark("mixed", (asked("one", "a", gold="a"), asked("two")))
    checked(mixed, conditions=["provided", "gold", "retrieved", "closed-book"])


# Whole runs.

def results(town):
    return [record["result"] for record in town.records()]


def test_a_run_drops_the_gold_and_asks_for_no_citations_without_numbers(ragbed, serve, town):
    server = serve(lambda body: "<Answer>111 people [1]</Answer>")
    path = town.config(server.url, perturbations=["none", "drop_gold", "unnumbered", "gold_at@2", "negatives@3"])
    cells = {cell["perturbation"]: cell for cell in ragbed.json("run", path)["cells"]}
    assert list(cells) == [None, "drop_gold", "unnumbered", "gold_at@2", "negatives@3"]
    by = {name: [one for one in results(town) if one["cell"] == cell["id"]] for name, cell in cells.items()}
    one = {name: next(result for result in found if result["question"] == "non_refusal-1")
           for name, found in by.items()}
    levels = {name: [passage["gold"] for passage in result["evidence"]] for name, result in one.items()}
    assert levels == {None: ["chunk", None], "drop_gold": [None], "unnumbered": ["chunk", None],
                      "gold_at@2": [None, "chunk"], "negatives@3": ["chunk", None, None, None, None]}
    assert (one["drop_gold"]["answerable"], one["drop_gold"]["gold_in_view"]) == (False, False)
    assert (one[None]["answerable"], one[None]["gold_in_view"]) == (True, True)
    recall = [one[name]["scores"]["citation_recall"] for name in (None, "gold_at@2", "unnumbered")]
    assert recall == [1.0, 0.0, None]
    prompts = [body["messages"][1]["content"] for body, _ in server.requests]
    assert sum("[1]" in prompt.split("Question:")[0] for prompt in prompts) == 4 * 6
    texts = [passage["source"] for passage in one["negatives@3"]["evidence"]]
    assert texts[:2] == ["town/1-0", "town/1-1"]
    assert all("1 people" not in source for source in texts)


def test_the_same_negatives_and_order_are_shown_to_every_strategy(ragbed, serve, town):
    server = serve(lambda body: "<Answer>111 people [1]</Answer>")
    path = town.config(server.url, perturbations="negatives@4+shuffle", reasoning=["direct", "plan_and_solve"])
    assert ragbed("run", path)[0] == 0
    orders = {}
    for result in results(town):
        orders.setdefault(result["question"], set()).add(tuple(one["chunk"] for one in result["evidence"]))
    assert all(len(found) == 1 for found in orders.values())
    assert all(len(next(iter(found))) == 6 for found in orders.values())


def test_fewer_negatives_or_chunks_than_asked_for_are_said_in_each_record_and_once_of_the_run(ragbed, serve, town):
    town.write([town.row(number) for number in range(2)])
    path = town.config(serve(lambda body: "<Answer>7</Answer>").url, reasoning=["direct", "plan_and_solve"],
                       perturbations=["none", "negatives@5", "gold_at@50", "gold_at@2"])
    status, out, _ = ragbed("run", path, "--json")
    assert status == 0
    cells = {cell["id"]: cell["perturbation"] for cell in json.loads(out)["cells"]}
    assert {(cells[result["cell"]], *result["notes"]) for result in results(town)} == {
        (None,), ("negatives@5", "negatives:2 of 5"), ("gold_at@50", "gold_at:2 of 50"),
        ("gold_at@2",)}
    assert [note for note in json.loads(out)["notes"] if "@" in note] == [
        "perturbation: gold_at@50 and gold_at@2 made no difference: all 8 prompts are identical",
        "negatives@5: 2 of 2 questions have fewer negatives than requested; the smallest number is 2.",
        "gold_at@50: 2 of 2 questions have too few chunks for this position, so their gold comes last, at position 2 "
        "or later."]


def test_a_table_stands_in_place_of_the_documents(ragbed, serve, town):
    server = serve(lambda body: "ANSWER: 19")
    path = town.config(server.url, benchmark={"kind": "mdbench", "path": str(DATA / "mdbench/mdbench_dataset.json")},
                       conditions=["provided", "closed-book"], perturbations=["none", "table"], reasoning="direct",
                       judge="lexical")
    assert [(cell["condition"], cell["perturbation"]) for cell in ragbed.json("run", path)["cells"]] == [
        ("provided", None), ("provided", "table"), ("closed-book", None)]
    prompts = [body["messages"][1]["content"] for body, _ in server.requests if "boats" in str(body)]
    assert sum("before the flood" in one and "The yard built 12 boats" not in one for one in prompts) == 1


def test_questions_that_name_no_gold_are_counted_where_it_is_dropped(ragbed, serve, town):
    rows = [town.row(number) for number in range(3)]
    rows[2]["citation_ids"] = "[]"
    rows[2]["documents"] = rows[2]["documents"].replace('"ground": true', '"ground": false')
    town.write(rows)
    path = town.config(serve(lambda body: "<Answer>7</Answer>").url, perturbations="drop_gold")
    (note,) = [note for note in ragbed.json("run", path)["notes"] if "drop_gold" in note]
    assert "drop_gold: 1 of 3 questions have no labelled gold chunks" in note
    found = {result["question"]: (result["answerable"], len(result["evidence"])) for result in results(town)}
    assert found == {"refusal-0": (False, 1), "non_refusal-1": (False, 1), "non_refusal-2": (True, 2)}


def test_whole_documents_come_out_of_the_index_where_the_questions_bring_none(ragbed, serve, town):
    long = "\n\n".join(f"## Part {part}\n\n" + "Oslo is the capital of Norway. " * 40 for part in range(3))
    own = town.own({"id": "a", "question": "Oslo is the capital of what?", "answer": "Norway",
                    "gold_documents": ["oslo.md"]}, {"id": "b", "question": "Who?", "answerable": False},
                   pages={"oslo.md": f"# Oslo\n\n{long}", "rome.md": "# Rome\n\nRome is the capital of Italy.\n"})
    server = serve(lambda _: "<Answer>Norway [1]</Answer>")
    assert ragbed("run", town.config(server.url, benchmark=own, conditions=["full", "gold"]))[0] == 0
    found = {(result["question"], len(result["evidence"])): result for result in results(town)}
    assert {key[0] for key in found} == {"a", "b"}
    (whole,) = found["a", 1]["evidence"]
    assert (whole["source"], whole["start"], whole["gold"]) == ("oslo.md", 0, "document")
    assert max(len(body["messages"][1]["content"]) for body, _ in server.requests) > 3_500
    assert re.search(r"Part 0.*Part 1.*Part 2", server.requests[0][0]["messages"][1]["content"], re.DOTALL)


def test_a_run_says_before_its_first_call_what_is_shown_nothing_and_what_has_no_score(ragbed, serve, town):
    rows = [town.row(number) for number in range(3)]
    rows[2]["citation_ids"] = "[]"
    rows[2]["documents"] = rows[2]["documents"].replace('"ground": true', '"ground": false')
    town.write(rows)
    path = town.config(serve(lambda body: "<Answer>7</Answer>").url, conditions=["gold", "provided"],
                       perturbations=["none", "drop_gold"], rules=["open", "grounded"])
    status, _, err = ragbed("run", path)
    assert status == 0
    assert "gold: 1 of 3 questions have no gold, so their prompts show no documents" in err
    assert "drop_gold: the prompts of the rules open offer no refusal" in err
