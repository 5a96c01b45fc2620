"""The MRKE loader: passages in three forms, names of fields, hops and types, and originals paired with their edits."""
import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.mrke import Mrke

ROW = {"id": "orl", "context": ["The Orlo family founded Tessel.", "Tessel is based in Marn."],
       "question": "Where is what the Orlo family founded based?", "answer": "Marn",
       "sub_questions": ["What did the Orlo family found?", "Where is #1 based?"],
       "sub_answers": ["Tessel", "Marn"], "hops": 2, "type": "Bridge"}
OLD = {"context": ["The Asters founded Boral.", "Boral is based in Selk."], "answer": "Selk",
       "question": "Where is what the Asters founded based?"}


@pytest.fixture
def load(tmp_path):
    return lambda *rows, **settings: loaded(Mrke, tmp_path / "mrke.jsonl", *rows, **settings).questions


def both(load, *rows):
    return load(*rows, versions="both")


def without(*names):
    return {name: value for name, value in ROW.items() if name not in names}


def test_a_row_becomes_a_question_with_its_chain(load):
    question, = load(ROW)
    assert (question.id, question.text, question.answers) == ("orl", ROW["question"], ("Marn",))
    assert question.sub_questions == ("What did the Orlo family found?", "Where is #1 based?")
    assert question.sub_answers == ("Tessel", "Marn")
    assert [chunk.content for chunk in question.provided] == ROW["context"]
    assert question.tags == {"hops": ("2",), "type": ("bridge",), "version": ("edited",), "chain": ("placeholders",)}


@pytest.mark.parametrize("passages", [
    ["Marn\nIt lies on a lake. It is old."], [["Marn", ["It lies on a lake.", " It is old."]]],
    [["Marn", ["It lies on a lake.", "It is old."]]], [["Marn", "It lies on a lake. It is old."]],
    [{"title": "Marn", "text": "It lies on a lake. It is old."}]])
def test_passages_come_in_several_forms(load, passages):
    question, = load({**ROW, "context": passages})
    assert [chunk.content for chunk in question.provided] == ["Marn\nIt lies on a lake. It is old."]


def test_passages_that_support_are_gold_where_the_record_names_them(load):
    passages = [["Marn", ["A town."]], ["Selk", ["A port."]], ["Orlo", ["A family."]]]
    question, = load({**ROW, "context": passages, "supporting_facts": [["Orlo", 0], ["Marn", 0], ["Marn", 1]]})
    assert [gold.chunk for gold in question.gold] == [question.provided[0].id, question.provided[2].id]


def test_an_original_is_a_question_of_its_own_that_shares_a_pair(load):
    for row in ({**ROW, "original": OLD}, {**ROW, **{f"original_{name}": value for name, value in OLD.items()}}):
        original, edited = both(load, row)
        assert (original.id, original.answers, original.sub_questions) == ("orl-original", ("Selk",), ())
        assert original.tags == {"version": ("original",), "pair": ("orl",)}
        assert edited.tags == {"hops": ("2",), "type": ("bridge",), "version": ("edited",), "pair": ("orl",),
                               "chain": ("placeholders",)}
        assert [chunk.content for chunk in original.provided] == OLD["context"]


def test_the_edited_questions_alone_are_asked_unless_others_are_wanted(load):
    row = {**ROW, "original": OLD}
    assert [one.id for one in load(row)] == ["orl"]
    assert [one.id for one in load(row, versions="original")] == ["orl-original"]
    assert [one.id for one in load(row, versions="both")] == ["orl-original", "orl"]


def test_originals_may_also_be_records_of_their_own(load):
    original, edited = both(load, {**OLD, "id": 1, "version": "original", "pair": "p"}, {**ROW, "pair": "p"})
    assert (original.tags["version"], edited.tags["version"]) == (("original",), ("edited",))
    assert original.tags["pair"] == edited.tags["pair"] == ("p",)


def test_fields_go_by_other_names_too(load):
    names = {"context": "passages", "sub_questions": "subquestions", "sub_answers": "intermediate_answers",
             "hops": "num_hops", "type": "question_type", "answer": "final_answer"}
    assert load({names.get(name, name): value for name, value in ROW.items()}) == load(ROW)


@pytest.mark.parametrize(("hops", "tag"), [(3, "3"), ("4-hop", "4"), ("2 hops", "2"), ("3", "3"), (None, "2")])
def test_hops_are_as_stated_else_as_many_as_sub_questions(load, hops, tag):
    assert load({**ROW, "hops": hops})[0].tags["hops"] == (tag,)


def test_questions_without_an_id_are_counted(load):
    assert [question.id for question in load(without("id"), without("id"), ROW)] == ["1", "2", "orl"]


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"sub_answers": ["Tessel"]}, "field sub_answers: expected one for each of the 2 sub-questions, found .*Tessel"),
    ({"hops": "many"}, "field hops: expected a number of hops, found 'many'"),
    ({"context": []}, "field context: expected a list of passages"),
    ({"context": ["Fine.", ["Marn", [3]]]}, r"field context\[1\]: expected a text, \[title, \[sentence, ...\]\]"),
    ({"context": [{"title": "Marn"}]}, r"field context\[0\].text: expected text, found nothing"),
    ({"supporting_facts": ["Marn"]}, r"field supporting_facts: expected a list of \[title, sentence number\]"),
    ({"supporting_facts": [2]}, "field supporting_facts: expected .*places in context from 0"),
    ({"version": "new"}, "field version: expected one of edited, counterfactual, original, factual, found 'new'"),
    ({"original": {**OLD, "answer": None}}, "field original.answer: expected text, found nothing"),
    ({"original_question": "Where?"}, "field original_context: expected a list of passages, found nothing"),
    ({"original": "none"}, "field original: expected a record"),
])
def test_a_record_that_does_not_fit_says_where(load, changes, complaint):
    with pytest.raises(BenchmarkError, match=rf"mrke\.jsonl, line 1, {complaint}"):
        load({**ROW, **changes})


def test_cofca_is_a_version_with_factual_and_counterfactual_questions(load):
    sub = [{"question": one, "answer": answer} for one, answer in zip(ROW["sub_questions"], ROW["sub_answers"],
                                                                      strict=True)]
    row = {"id": 1, "passage": "The Orlo family founded Tessel. Tessel is based in Marn.", "question": ROW["question"],
           "answer": "Marn", "sub_qas": sub, "version": "Counterfactual", "source": "wikipedia"}
    counterfactual, factual = both(load, row, {**row, "id": 2, "version": "factual", "source": "hotpotqa"})
    assert [chunk.content for chunk in counterfactual.provided] == [row["passage"]]
    assert (counterfactual.sub_questions, counterfactual.sub_answers) == (tuple(ROW["sub_questions"]), (
        "Tessel", "Marn"))
    assert [one.tags["version"] + one.tags["source"] for one in (counterfactual, factual)] == [
        ("edited", "wikipedia"), ("original", "hotpotqa")]
    assert [one.id for one in load(row, {**row, "id": 2, "version": "factual"})] == ["1"]
