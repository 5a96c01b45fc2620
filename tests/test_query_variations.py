"""Query variations: names that parse back, typing errors, keywords, paraphrases; and a run that varies them."""
import json
from itertools import pairwise
from unicodedata import normalize

import pytest
from each_case import each
from hypothesis import given
from hypothesis import strategies as st
from judged import play

from ragbed.documents import SettingsError
from ragbed.experiments.query_variations import AskedQuestion, QueryVariation, ask_paraphrase
from ragbed.strategies import Reply

QUESTION = "Did Ann Lee and Bo Rye not open \"The Long Pier\" before 1,904?"
KEPT = "Was \"The Long Pier\" not opened by Ann Lee and Bo Rye before 1904?"


def of(name, text, seed="0:q"):
    return QueryVariation.parse(name).apply(text, seed)


@pytest.mark.parametrize(("name", "same"), [("as_asked", "as_asked"), ("typos", "typos@10"), ("typos@100", "typos@100"),
                                            ("keywords", "keywords"), ("paraphrase", "paraphrase")])
def test_a_name_parses_back(name, same):
    assert str(QueryVariation.parse(name)) == str(QueryVariation.parse(same)) == same


@pytest.mark.parametrize("name", ["typo", "typos@0", "typos@101", "typos@0.1", "keywords@3", "", "typos@"])
def test_what_is_no_variation_is_one_line(name):
    with pytest.raises(SettingsError, match="as_asked, typos, keywords, paraphrase, lower_case, or typos@N"):
        QueryVariation.parse(name)


def is_one_error(wrong, word):
    """Whether a letter beside the first is another, missing, double, or changes places with the next."""
    places = range(1, len(word))
    other = [word[:at] + wrong[at:at + 1] + word[at + 1:] for at in places]
    moved = [word[:at] + word[at + 1:at + 2] + word[at] + word[at + 2:] for at in places]
    return wrong != word and wrong in (*other, *moved, *(word[:at] + word[at + 1:] for at in places),
                                       *(word[:at] + word[at] + word[at:] for at in places))


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyzABCXYZ", min_size=4, max_size=9), min_size=1, max_size=30),
       st.integers(1, 100), st.text(max_size=3))
def test_so_many_of_a_hundred_words_have_one_error_each_and_a_higher_rate_has_those_of_a_lower(words, percent, seed):
    text = "Is it " + " ".join(words) + " in 1904b?"
    more, less = (of(f"typos@{rate}", text, seed).split()[2:-2] for rate in (100, percent))
    changed = [at for at, (wrong, word) in enumerate(zip(less, words, strict=True)) if wrong != word]
    assert len(changed) == max(1, round(percent * len(words) / 100))
    assert all(less[at] == more[at] for at in changed)
    assert all(is_one_error(wrong, word) for wrong, word in zip(more, words, strict=True))


def test_typing_errors_are_the_same_for_the_same_seed_and_differ_between_questions():
    text = "Which harbour was closed by a landslide in the northern province?"
    assert of("typos@50", text) == of("typos@50", text) != of("typos@50", text, "0:other")


def test_a_hangul_syllable_has_one_letter_other_or_none_at_its_end_and_particles_of_one_syllable_stay():
    word = "인공지능산업성장률"
    for seed in range(40):
        wrong = of("typos", word, f"{seed}:q")
        (before, after), = [(*pair,) for pair in zip(word, wrong, strict=True) if pair[0] != pair[1]]
        ours, theirs = normalize("NFD", after), normalize("NFD", before)
        assert theirs.startswith(ours) or [a == b for a, b in zip(ours, theirs, strict=True)].count(False) == 1
        assert wrong[0] == "인"
    assert of("typos", "그 산 은?") == "그 산 은?"


@pytest.mark.parametrize(("text", "expected"), [
    ("Were Scott Derrickson and Ed Wood of the same nationality?", "Scott Derrickson Ed Wood same nationality"),
    ("Which company wasn't founded before 1,999 by Bob’s father?", "company wasn't founded before 1,999 Bob's father"),
    ("What is it?", "What is it?"),
    ("2023년에 설립된 삼성전자의 회사 대표는 누구인가요?", "2023년 설립 삼성전자 회사 대표 누구")])
def test_keywords_are_what_one_types_into_a_search_box(text, expected):
    assert of("keywords", text) == expected


@each(("reply", "flaw"), [
    (KEPT, ""), (f"Question: {KEPT}", ""), (f"<think>hm</think>\n{KEPT}\nThat is it.", ""),
    (KEPT.replace("1904", "1905"), "it lacks 1904"), (KEPT.replace("Bo Rye", "another"), "it lacks Bo, Rye"),
    (KEPT.replace(" not", ""), "it lacks not"), (QUESTION.upper(), "it is the original question"),
    (KEPT.replace("Long Pier", "Long, long Pier"), "it lacks The Long Pier"), (KEPT + " Well." * 50, "it is too long"),
    ("", "it is not a question"),
    ("I cannot answer because the question is unanswerable with the documents.", "it is not a question")])
def test_a_paraphrase_keeps_names_numbers_quotations_and_a_negation_or_is_asked_for_again(reply, flaw):
    asked, came = play(ask_paraphrase(QUESTION), Reply(reply), Reply("No."))
    assert [call.purpose for call in asked] == ["paraphrase", "paraphrase_repair"][:1 + bool(flaw)]
    if flaw:
        assert f"cannot be used: {flaw}." in asked[1].messages[-1].content
        assert (came.text, came.note.partition(":")[0]) == (QUESTION, "not_paraphrased")
    else:
        assert came == AskedQuestion(KEPT)


def test_a_paraphrase_denies_nothing_that_the_question_does_not():
    asked, _ = play(ask_paraphrase("Who wrote Hamlet?"), Reply("Who did not write Hamlet?"),
                    Reply("Hamlet is by whom?"))
    assert "cannot be used: it has a negation, which the question does not have." in asked[1].messages[-1].content


def written(body):
    """Paraphrases, of town 3 none that keeps the number."""
    asked = body["messages"][1]["content"].partition("<query>\n")[2].partition("\n")[0]
    number = asked.removesuffix("?").split()[-1]
    return "What is its population?" if number == "3" else f"What is the population of town {number}?"


@pytest.mark.slow
def test_variations_are_a_factor_of_a_run_whose_records_have_both_and_whose_judge_has_the_question_as_asked(
        serve, town, ragbed):
    answering, writing, grading = serve(town.reply), serve(written), serve(lambda body: "Grade: Correct")
    names = ["as_asked", "typos@50", "keywords", "paraphrase", "lower_case"]
    path = town.config(answering.url, questions=names, conditions="retrieved", retriever={"kind": "bm25"},
                       judge=f"{grading.url}#judge", paraphraser=f"{writing.url}#w", repeats=2)
    plan = ragbed.json("run", path, "--dry-run")
    assert any("#w writes paraphrases with one or two calls per question, up to 12" in note for note in plan["notes"])
    made = ragbed.json("run", path)
    assert [cell.get("variation") for cell in made["cells"]] == [None, *names[1:]] * 2
    assert sum(pair["factor"] == "variation" for pair in made["comparisons"]["pairs"]) == 10  # each two, as asked too
    assert len(writing.requests) == 6 + 1  # one of a question for both repeats, and one more that lacked a number
    records = {(one["result"]["cell"], one["result"]["question"]): one["result"] for one in town.records()}
    by_variation = {cell.get("variation"): cell["id"] for cell in made["cells"]}
    said = {name: records[cell, "non_refusal-1"].get("asked", "") for name, cell in by_variation.items()}
    assert (said[None], said["keywords"], said["lower_case"], said["paraphrase"]) == (
        "", "many people live town 1", "how many people live in town 1?", "What is the population of town 1?")
    for name, cell in by_variation.items():
        search, _ = records[cell, "non_refusal-1"]["trace"]
        assert search["query"] == (said[name] or "How many people live in town 1?"), name
    sent = [body["messages"][-1]["content"] for body, _ in answering.requests]
    assert sum("population of town 1?" in prompt for prompt in sent) == 2
    assert not any("population" in json.dumps(body) for body, _ in grading.requests)
    lost = records[by_variation["paraphrase"], "non_refusal-3"]
    assert (lost.get("asked"), lost["notes"]) == (None, ("not_paraphrased:it lacks 3",))
    assert (lost["asked_usage"]["calls"], lost["usage"]["calls"]) == (2, 1)
    assert "questions: paraphrase leaves 1 of 6 questions unchanged." in made["notes"]
    assert any("#w wrote the paraphrases, one per question" in note and "14 calls" in note
               for note in made["notes"])
    out = ragbed("show", town.run, "non_refusal-1", "--cell", by_variation["paraphrase"])[1]
    assert "How many people live in town 1?" in out
    assert "asked as" in out
    assert "What is the population of town 1?" in out
    asked = len(writing.requests) + len(answering.requests)
    assert ragbed("verify", town.run)[0] == 0
    assert "No figure differs from the run's." in ragbed("rescore", town.run)[1]
    assert ragbed("cassette", "export", town.run, "--out", town.folder / "c.gz")[0] == 0
    again = ragbed.json("run", "--replay", town.folder / "c.gz", "--out", town.folder / "replayed")
    assert again["results"] == made["results"]
    assert len(writing.requests) + len(answering.requests) == asked


def test_a_call_for_a_paraphrase_that_fails_ends_its_question_and_answers_nothing(serve, town, ragbed):
    answering, writing = serve(town.reply), serve(lambda body: {"status": 400, "text": "no"})
    path = town.config(answering.url, questions="paraphrase", paraphraser=f"{writing.url}#w")
    assert "6 failed with http_400" in ragbed("run", path)[2]
    assert [one["result"]["outcome"] for one in town.records()] == ["error"] * 6
    assert answering.requests == []


def test_a_paraphrase_needs_a_model_and_a_wording_that_changes_nothing_is_the_cell_as_asked(serve, town, ragbed):
    server = serve(town.reply)
    ragbed.refuses("run", town.config(server.url, questions="paraphrase"), says=["paraphraser: MODEL"])
    town.write([town.row(number, query="마을 1의 인구는?") for number in range(2)])
    made = ragbed.json("run", town.config(server.url, questions=["as_asked", "lower_case"]))
    assert len(made["cells"]) == 1
    assert any("2 combinations of the settings make 1 cell" in note for note in made["notes"])


def test_rows_that_differ_only_in_the_phrasing_are_named_after_it(serve, town, ragbed):
    path = town.config(serve(town.reply).url, questions=["as_asked", "typos", "keywords"])
    out = ragbed("run", path)[1]
    assert [line.split()[0] for line in out.splitlines() if line.startswith(("as_asked ", "typos", "keywords "))] == [
        "as_asked", "typos@10", "keywords"]
    assert [(row["first_name"], row["second_name"]) for row in ragbed.json("compare", town.run)["comparisons"]] == [
        ("as_asked", "typos@10"), ("as_asked", "keywords"), ("typos@10", "keywords")]


def test_seeds_draw_typing_errors_and_nothing_else(serve, town, ragbed):
    made = ragbed.json("run", town.config(serve(town.reply).url, questions=["keywords", "typos"], seed=[0, 1]))
    assert [(cell["variation"], cell["seed"]) for cell in made["cells"]] == [
        ("keywords", None), ("typos@10", 0), ("typos@10", 1)]
    texts = [one["result"]["asked"] for one in town.records() if "peop" not in one["result"]["asked"]]
    assert all(one != other for one, other in pairwise(sorted(set(texts))))
