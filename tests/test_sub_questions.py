"""Sub-questions: asked in order over the question's evidence, or answered in its prompt; never with gold in them."""
import contextlib
import json
import re
import shutil
import sqlite3
from collections import Counter

import pytest

from ragbed.experiments.benchmarks.fields import fill_references
from ragbed.strategies import CRESTS, REFUSAL

CANARY = "zanzibar"  # stands in every gold field and in nothing that a prompt may show


def row(number, hops=2, **changes):
    """A record of MuSiQue's: the author of a book, and that author's place of birth."""
    steps = [("Who wrote book {}?", f"{CANARY} Ada"), ("Where was #1 born?", f"{CANARY} Paris"),
             ("Which country holds #2, where #1 lived?", f"{CANARY} France")][:hops]
    paragraphs = [("Books", f"Book {number} was written by Eve.", True), ("People", "Eve was born in Rome.", True)]
    return {"id": f"{hops}hop__{number}", "question": f"Where was the author of book {number} born?",
            "answer": f"{CANARY} Paris", "answer_aliases": [], "answerable": True,
            "paragraphs": [{"idx": place, "title": title, "paragraph_text": text, "is_supporting": gold}
                           for place, (title, text, gold) in enumerate(paragraphs)],
            "question_decomposition": [
                {"id": place, "question": question.format(number), "answer": answer, "paragraph_support_idx": 0}
                for place, (question, answer) in enumerate(steps)], **changes}


@pytest.fixture
def chains(town):
    """The settings of a run over such records."""
    def config(url, rows=None, **settings):
        path = town.folder / "musique.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in rows or [row(1), row(2, hops=3)]))
        return town.config(url, benchmark={"kind": "musique", "path": str(path)}, **settings)
    return config


def reply(body):
    """Answers that depend on the question alone; those about a writer cite and end in a full stop."""
    last = body["messages"][-1]["content"]
    if "simpler questions" in last:
        return "Who is it?"
    asked = re.findall(r"(?:Question: |under the same rules:\n|first:\n|in view:\n)(.*)", last)[-1]
    if asked.startswith("Who wrote"):
        return "<Answer>It was Eve\n Smith [1].</Answer>"
    return "<Answer>Rome [2]</Answer>" if asked.startswith("Where was") else "<Answer>Italy</Answer>"


def sent(server):
    """The question that each request ends with."""
    return [re.findall(r"Question: (.*)", body["messages"][1]["content"])[-1] for body, _ in server.requests]


def prompts(server):
    return [message["content"] for body, _ in server.requests for message in body["messages"]]


def by_question(town):
    return {record["result"]["question"]: record["result"] for record in town.records()}


def test_each_is_asked_in_order_with_the_models_own_earlier_answers_over_the_same_evidence(serve, town, chains, ragbed):
    server = serve(reply)
    assert ragbed("run", chains(server.url, concurrency=1))[0] == 0
    assert sent(server) == [
        "Where was the author of book 1 born?", "Who wrote book 1?", "Where was It was Eve Smith born?",
        "Where was the author of book 2 born?", "Who wrote book 2?", "Where was It was Eve Smith born?",
        "Which country holds Rome, where It was Eve Smith lived?"]
    first = [body["messages"][1]["content"].partition("Rules:")[0] for body, _ in server.requests[:3]]
    assert len(set(first)) == 1
    assert "[1]\nBooks" in first[0]
    assert CANARY not in "".join(prompts(server))
    result = by_question(town)["3hop__2"]
    assert [sub["question"] for sub in result["subs"]] == sent(server)[4:]
    assert [sub["text"] for sub in result["subs"]] == ["It was Eve\n Smith [1].", "Rome [2]", "Italy"]
    assert [sub["outcome"] for sub in result["subs"]] == ["answered"] * 3
    assert [len(sub["trace"]) for sub in result["subs"]] == [2, 2, 2]


@pytest.mark.parametrize(("said", "outcome"), [("", "malformed"), ({"status": 400}, "error"), (REFUSAL, "refused")])
def test_one_that_has_no_answer_stands_as_words_in_the_next(serve, town, chains, ragbed, said, outcome):
    server = serve(lambda body: said if "Question: Who wrote" in body["messages"][1]["content"] else reply(body))
    status, *_ = ragbed("run", chains(server.url, [row(1)], rules="grounded"))
    assert status == 0
    assert sent(server)[-1] == 'Where was the answer to "Who wrote book 1?" born?'
    result = by_question(town)["2hop__1"]
    assert [sub["outcome"] for sub in result["subs"]] == [outcome, "answered"]
    assert result["outcome"] == "answered"


@pytest.mark.parametrize(("trouble", "outcome", "asked"), [
    ({"drop": True}, "error", 1), ({"text": "late", "delay": 9}, "timeout", 1), ({"status": 400}, "error", 4)])
def test_where_no_reply_came_they_are_not_asked_and_share_the_questions_outcome(serve, town, chains, ragbed, trouble,
                                                                               outcome, asked):
    server = serve(lambda _: trouble)
    seconds = 0.5 if outcome == "timeout" else 60
    ragbed("run", chains(server.url, [row(1, hops=3)], calls={"calls": {"attempts": 1, "seconds": seconds}}))
    result = by_question(town)["3hop__1"]
    assert (result["outcome"], [sub["outcome"] for sub in result["subs"]]) == (outcome, [outcome] * 3)
    assert len(server.requests) == asked


def test_gold_fills_them_only_where_the_settings_say_so_and_the_summary_says_it(serve, town, chains, ragbed):
    server = serve(reply)
    status, out, _ = ragbed("run", chains(server.url, [row(1)], filled="gold"), "--json")
    assert status == 0
    assert sent(server)[-1] == f"Where was {CANARY} Ada born?"
    run = json.loads(out)
    assert any("gold answers" in text for text in run["notes"])
    assert [(cell["sub_answers"], cell["filled"]) for cell in run["cells"]] == [("asked", "gold")]


def test_they_are_not_asked_where_the_benchmark_does_not_score_them(serve, town, ragbed):
    server = serve(reply)
    own = town.own({"question": "Where was Eve born?", "answer": "Rome", "sub_questions": ["Who was Eve?"]})
    status, out, _ = ragbed("run", town.config(server.url, benchmark=own, conditions="closed-book"), "--json")
    assert (status, len(server.requests)) == (0, 1)
    assert "sub_answers" not in json.loads(out)["cells"][0]


@pytest.mark.slow
def test_continued_replayed_or_asked_afresh_the_results_are_the_same(serve, town, chains, ragbed):
    server = serve(reply)
    path = chains(server.url, reasoning=["direct", "least_to_most"], conditions=["provided", "closed-book"])
    assert ragbed("run", path)[0] == 0
    made, hashes, summary = len(server.requests), town.hashes(), (town.run / "summary.json").read_bytes()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert (len(server.requests), town.hashes()) == (made, hashes)
    assert (town.run / "summary.json").read_bytes() == summary
    with contextlib.closing(sqlite3.connect(town.run / "records.sqlite")) as left:  # as if killed in its last question
        left.execute("DELETE FROM records WHERE question = '3hop__2'")
        left.execute("DELETE FROM calls WHERE reply LIKE '%Italy%'")
        left.commit()
    (town.run / "summary.json").unlink()
    assert ragbed("run", path)[0] == 0
    assert made < len(server.requests) < 2 * made
    assert (town.hashes(), (town.run / "summary.json").read_bytes()) == (hashes, summary)
    shutil.rmtree(town.run)
    assert ragbed("run", path)[0] == 0
    assert (town.hashes(), (town.run / "summary.json").read_bytes()) == (hashes, summary)


@pytest.mark.parametrize("name", CRESTS)
def test_every_strategy_can_be_asked_for_all_in_one_reply(serve, town, chains, ragbed, name):
    def answer(body):
        last = body["messages"][-1]["content"]
        if "simpler questions" in last:
            return "Who is it?"
        lines = "Sub-answer 1: Eve [1]\n**Sub-answer 2:** Rome"
        return f"{lines}\n<Answer>Rome [2]</Answer>" if "Sub-answer 1" in last else "Eve"

    server = serve(answer)
    assert ragbed("run", chains(server.url, sub_answers="in_prompt", reasoning=name, concurrency=1))[0] == 0
    results = by_question(town)
    assert [(sub["outcome"], sub["text"]) for sub in results["2hop__1"]["subs"]] == [
        ("answered", "Eve [1]"), ("answered", "Rome")]
    assert [sub["outcome"] for sub in results["3hop__2"]["subs"]] == ["answered", "answered", "malformed"]
    assert {(result["text"], result["outcome"], result["sub_usage"]["calls"]) for result in results.values()} == {
        ("Rome [2]", "answered", 0)}
    assert CANARY not in "".join(prompts(server))
    last = server.requests[-1][0]["messages"]
    assert any("1. Who wrote book 2?\n2. Where was #1 born?\n3. " in message["content"] for message in last)


def test_sub_answers_are_those_of_the_answer_where_a_check_of_it_comes_last(serve, town, chains, ragbed):
    server = serve(lambda body: "NO FAULTS" if "NO FAULTS" in body["messages"][-1]["content"] else
                   "Sub-answer 1: Eve\nSub-answer 2: Rome\n<Answer>Rome [2]</Answer>")
    assert ragbed("run", chains(server.url, [row(1)], sub_answers="in_prompt", reasoning="reflect"))[0] == 0
    (result,) = by_question(town).values()
    assert [sub["text"] for sub in result["subs"]] == ["Eve", "Rome"]
    assert result["text"] == "Rome [2]"


def test_sub_questions_reach_the_prompt_of_the_question_only_where_the_settings_show_them(serve, town, chains, ragbed):
    server = serve(reply)
    status, out, _ = ragbed("run", chains(server.url, [row(1)], show=["question", "sub_questions"],
                                          sub_answers="none"), "--json")
    assert status == 0
    assert Counter("2. Where was #1 born?" in text for text in prompts(server) if "Question:" in text) == {
        True: 1, False: 1}
    assert [cell["show"] for cell in json.loads(out)["cells"]] == ["question", "sub_questions"]
    assert CANARY not in "".join(prompts(server))


@pytest.mark.parametrize(("text", "filled"), [
    ("Where was #1 born?", "Where was Ada born?"), ("#2 and #1", "Rome and Ada"),
    ("the #1 hit of #3", "the Ada hit of #3"),
    ("#10 of #1", "#10 of Ada"), ("#0", "#0"), ("#123", "#123"), ("who?", "who?")])
def test_references_to_earlier_answers_are_filled_and_others_stay(text, filled):
    assert fill_references(text, ["Ada", "Rome"]) == filled


def test_an_answer_that_looks_like_a_reference_is_not_filled_again():
    assert fill_references("#1 and #2", ["#2 {question}", "Rome"]) == "#2 {question} and Rome"


def test_the_parts_of_a_searched_question_are_asked_over_what_was_found_without_a_search_of_their_own(
        serve, chains, ragbed):
    def thinking(body):
        last, count = body["messages"][-1]["content"], len(body["messages"])
        return "<Answer>Rome</Answer>" if "Now answer" in last else f"Eve was born in Rome, as {count} documents say."

    server = serve(thinking)
    settings = {"reasoning": {"kind": "ircot", "iterations": 2}, "conditions": "retrieved", "rows": [row(1)]}
    assert ragbed("run", chains(server.url, concurrency=1, **settings))[0] == 0
    turns = [body["messages"][-1]["content"] for body, _ in server.requests]
    assert [turn.partition("\n\n")[0] for turn in turns if "Go on from what is shown above" in turn][1:] == [
        "Everything that can be found is shown above."] * 2
