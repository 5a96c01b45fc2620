"""`ragbed run --dry-run`: what a run would ask and cost, without a call or a file."""
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ragbed.experiments import Question
from ragbed.experiments.running.jobs import SAMPLE, sample_evenly
from ragbed.strategies import answer, ask, catalogue, template
from ragbed.strategies.token_estimates import estimate_tokens

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def plan(ragbed, town):
    """The plan of the town's run under these settings, as JSON."""
    def planned(url="http://127.0.0.1:9/v1", *options, **settings):
        status, out, err = ragbed("run", town.config(url, **settings), "--dry-run", "--json", *options)
        assert (status, err) == (0, "")
        assert not (town.folder / "runs").exists()
        return json.loads(out)

    return planned


def test_the_run_that_follows_stays_within_what_was_planned(plan, serve, town, ragbed):
    server = serve(town.reply)
    planned = plan(server.url, reasoning=["direct", "least_to_most"])
    assert server.requests == []
    direct, least = planned["cells"]
    assert (direct["name"], direct["questions"], direct["calls"]) == ("direct", 6, {"least": 6, "most": 6})
    assert least["calls"] == {"least": 12, "most": 48}  # decompose and answer; or with six sub-questions too
    assert direct["completion_tokens"] == {"most": 6 * 1024}
    assert planned["total"]["calls"] == {"least": 18, "most": 54}
    assert ragbed("run", town.config(server.url, reasoning="direct"))[0] == 0
    sent = sum(3 + estimate_tokens(message["content"]) for body, _ in server.requests for message in body["messages"])
    assert sent == pytest.approx(direct["prompt_tokens"]["least"], rel=0.01)
    assert direct["prompt_tokens"]["least"] == direct["prompt_tokens"]["most"]


def test_what_another_layout_would_save_is_counted_and_said_before_the_first_call(plan, serve, town, ragbed):
    """Two strategies and two repeats: as published each strategy has the documents computed once."""
    used = {"prompt_tokens": 1000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 250}}
    server = serve(lambda body: {"text": town.reply(body), "usage": used})
    both = {"reasoning": ["direct", "chain_of_draft"], "conditions": "provided", "repeats": 2}
    published = plan(server.url, layout="as_published", **both)
    [line] = [note for note in published["notes"] if "documents_first" in note]
    saved, sent = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", line))
    assert 0 < 2 * saved == sent < published["total"]["prompt_tokens"]["least"] / 2
    assert "documents_first would save" not in str(plan(server.url, layout="documents_first", **both))
    assert "documents_first" not in str(plan(server.url, layout="as_published", reasoning="direct")["notes"])
    assert server.requests == []
    status, out, err = ragbed("run", town.config(server.url, layout="as_published", **both), "--full")
    assert (status, line in err) == (0, True)
    assert any("25%" in row for row in out.splitlines() if "direct" in row)
    summary = json.loads((town.run / "summary.json").read_text())
    assert [cell["usage"]["cached_tokens"] for cell in summary["cells"]] == [6 * 250] * 4
    assert ("Servers had 6,000 of 24,000 prompt tokens cached (25%), because prompts began alike. Judges are included."
            in summary["notes"])


def test_the_table_says_what_json_says(ragbed, town):
    config = town.config("http://127.0.0.1:9/v1", reasoning=["direct", "least_to_most"])
    status, out, err = ragbed("run", config, "--dry-run")
    assert status == 0
    assert "2 cells of 6 questions" in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any(line.startswith("least_to_most 12 to 48 ") for line in lines)
    assert any(line.startswith("all 18 to 54 ") for line in lines)
    assert "The price of http://127.0.0.1:9/v1#m is unknown." in err


def test_what_a_pipeline_asks_its_models_is_not_guessed(ragbed, town):
    config = town.config("http://127.0.0.1:9/v1", pipelines=[{"kind": "command", "name": "theirs", "argv": ["true"]}])
    lines = [" ".join(line.split()) for line in ragbed("run", config, "--dry-run")[1].splitlines()]
    assert any(line.startswith("theirs ") and line.endswith(" 6 ? ? ?") for line in lines)


def loops(task):
    """Asks whether the evidence is enough until it is, five times at most: a user's strategy, known to no table."""
    evidence = yield from task.gather(task.question)
    for _ in range(4):
        reply = yield replace(ask(task, template("direct"), evidence, "enough"), max_tokens=10)
        if "Yes" in reply.text:
            break
    return (yield from answer(task, "direct", evidence, thinks=False))


def test_bounds_of_a_strategy_come_from_playing_it(plan, monkeypatch):
    monkeypatch.setitem(catalogue.REASONING, "loops", loops)
    cell, = plan(reasoning="loops")["cells"]
    assert cell["calls"] == {"least": 12, "most": 30}
    assert cell["completion_tokens"] == {"most": 6 * (4 * 10 + 1024)}
    assert plan(reasoning="loops", limits={"calls": 3})["cells"][0]["calls"] == {"least": 12, "most": 18}


def test_what_a_strategy_with_tools_may_come_to_is_bounded_whether_they_are_called_or_not(plan):
    settings = {"reasoning": [{"kind": "react", "iterations": 2}, {"kind": "react", "iterations": 2, "tools": "text"}],
                "conditions": "provided"}
    native, text = plan(**settings)["cells"]
    # given: two iterations without a search, and the answer; where no tool is called, a call with tools before them
    assert (native["calls"], text["calls"]) == ({"least": 12, "most": 24}, {"least": 12, "most": 18})


def test_an_agent_that_calls_tools_in_text_is_bounded_by_its_turns_whatever_its_tools(plan):
    agents = [{"kind": "agent", "protocol": "text", "turns": 4, "tools": tools} for tools in (["search"], ["grep"])]
    search, grep = plan(reasoning=agents, conditions="provided")["cells"]
    assert search["calls"]["most"] == grep["calls"]["most"] == 6 * (4 + 1)


def test_checks_that_fail_at_first_and_then_hold_are_bounded(plan):
    checks = {"kind": "supported", "by": "model", "of": {"kind": "sufficient", "of": "direct"}}
    lexical = {"kind": "supported", "of": "direct"}
    cells = plan(reasoning=[checks, lexical], conditions="provided")["cells"]
    # given: judged once, for a search brings nothing new; answered, checked, mended, checked again
    assert [cell["calls"]["most"] for cell in cells] == [6 * 5, 6 * 2]


def test_prices_are_of_the_whole_run_and_unknown_where_the_model_is(plan):
    planned = plan(models=["openai:gpt-4o-mini", "http://127.0.0.1:9/v1#m"])
    known, unknown = planned["cells"]
    tokens = known["prompt_tokens"]["most"], known["completion_tokens"]["most"]
    assert known["price"]["most"] == pytest.approx(tokens[0] * 0.15e-6 + tokens[1] * 0.6e-6, rel=0.01)
    assert known["price"]["least"] == pytest.approx(tokens[0] * 0.15e-6, rel=0.01)
    assert unknown["price"] == planned["total"]["price"] == {"least": None, "most": None}
    assert unknown["prompt_tokens"] == known["prompt_tokens"]


def test_votes_on_answers_of_whole_sentences_are_told_beforehand(plan):
    def told(**settings):
        return [note for note in plan(**settings)["notes"] if "votes count only identical" in note]

    voting = {"kind": "supported", "of": {"kind": "self_consistency", "samples": 3}}
    assert told(reasoning=["direct", voting]) == [
        "supported(self_consistency(samples=3)): votes count only identical answers, and whole sentences are "
        "rarely identical; `brief: true` asks for short answers."]
    assert told(reasoning=[voting], brief=True) == told(reasoning=["direct"]) == []


def test_a_judge_model_is_counted_apart(plan):
    planned = plan(judge="openai:gpt-4o")
    assert planned["judge"]["calls"] == 10  # five answerable questions, each asked again where it cannot be read
    assert planned["judge"]["completion_tokens"] == 10 * 512
    assert planned["judge"]["price"] > 0
    assert plan()["judge"] is None


def test_how_many_questions_their_limits_may_end_is_said(plan):
    note = "`limits` may end up to 6 of 12 questions without an answer, in 1 of 2 cells: "
    limited = plan(conditions="retrieved", retriever={"kind": "dense", "k": 5}, limits={"calls": 2},
                   reasoning=["direct", "least_to_most"])
    assert [one for one in limited["notes"] if one.startswith(note)] == [
        note + "limit of 2 calls per question reached."]
    free = plan(conditions="retrieved", retriever={"kind": "dense", "k": 5}, reasoning=["direct", "least_to_most"])
    assert not [one for one in free["notes"] if "may end" in one]


def test_prompts_that_cannot_fit_are_counted_and_not_sent(plan, town):
    town.write([town.row(0), town.row(1, query="How many people live in town 1? " + "word " * 3000)])
    cell, = plan(calls={"context": 2000})["cells"]
    assert (cell["too_long"], cell["calls"]) == (1, {"least": 1, "most": 1})


def test_what_will_be_searched_is_shown_by_chunks_of_its_size(plan, town):
    small, large = (plan(conditions="retrieved", retriever={"kind": "dense", "k": k})["cells"][0] for k in (1, 2))
    assert small["prompt_tokens"]["most"] < large["prompt_tokens"]["most"]
    own = town.own({"id": "q", "question": "Who is the mayor?", "answer": "Ada"},
                   pages={"town.txt": "Ada is the mayor. " * 500})
    planned = plan(benchmark=own, conditions="retrieved", retriever={"kind": "dense", "k": 4})
    assert 800 < planned["cells"][0]["prompt_tokens"]["most"] < 1200  # four chunks of 800 characters, and rules
    assert any("The index is not built yet" in note for note in planned["notes"])


def test_sub_questions_are_asked_too(plan):
    planned = plan(benchmark={"kind": "musique", "path": str(DATA / "musique" / "musique_ans_v1.0_dev.jsonl")})
    assert planned["cells"][0]["calls"] == {"least": 3 + 2 + 3 + 4, "most": 3 + 2 + 3 + 4}


def test_the_smallest_difference_is_that_of_the_statistics(plan):
    from ragbed.experiments.statistics import planned_difference

    found = plan(reasoning=["direct", "least_to_most", "plan_and_solve"])["detectable"]
    assert (found["metric"], found["pairs"]) == ("unified", 3)
    assert found["of_one_pair"] == planned_difference("unified", 5, 1)
    assert found["assumed"] == "the differences of two cells have a standard deviation of 0.5"
    assert found["of_all_pairs"] == planned_difference("unified", 5, 1, comparisons=3)


def test_what_can_be_detected_allows_for_questions_that_share_documents(plan, town, ragbed):
    from ragbed.experiments.statistics import planned_difference

    benchmark = town.own(*({"id": f"q{number}", "question": "Who?", "answer": "Ada",
                            "gold_documents": [f"d{number // 5}.txt"]} for number in range(60)))
    found = plan(benchmark=benchmark, conditions="closed-book", unit="document")["detectable"]
    assert (found["metric"], found["questions"], found["clusters"]) == ("right", 60, 12)
    assert found["of_one_pair"] == planned_difference("right", 60, clusters=[(5, 0)] * 12)
    assert found["assumed"].endswith("with a correlation of 0.2 between questions over the same documents")
    config = town.config("http://127.0.0.1:9/v1", benchmark=benchmark, conditions="closed-book", unit="document")
    out = ragbed("run", config, "--dry-run")[1]
    assert "60 questions in 12 units can detect a difference in right of" in " ".join(out.split())


@pytest.mark.slow
def test_of_many_questions_some_stand_for_all(plan, town):
    questions = tuple(Question(str(number), "?", (), True) for number in range(1000))
    assert [question.id for question in sample_evenly(questions)] == [str(number * 10) for number in range(SAMPLE)]
    assert sample_evenly(questions[:7]) == questions[:7]
    town.write([town.row(number) for number in range(1000)])
    planned = plan(reasoning=["direct", "chain_of_thought", "least_to_most"])
    assert [cell["calls"] for cell in planned["cells"]] == [
        {"least": 1000, "most": 1000}, {"least": 1000, "most": 1000}, {"least": 2000, "most": 8000}]
    assert any("100 of the 1000 questions" in note for note in planned["notes"])


def test_what_keeps_a_run_from_beginning_keeps_a_plan_from_being_made(ragbed, town):
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1", conditions="full"), "--dry-run", says=["conditions:"])
    ragbed.refuses("run", town.config("ftp://x"), "--dry-run", says=["unknown model"])
    ragbed.refuses("run", town.config("x", models=["http://a/v1#m", "http://b/v1#m"]), "--dry-run",
                   says=["have the same identity"])


def test_a_plan_says_what_stands_in_the_runs_folder(serve, town, ragbed):
    def notes(**settings):
        return ragbed.json("run", town.config(server.url, **settings), "--dry-run")["notes"]

    server = serve(town.reply)
    assert ragbed("run", town.config(server.url, reasoning="direct"))[0] == 0
    assert any("holds this finished run" in note for note in notes(reasoning="direct"))
    (town.run / "summary.json").unlink()
    assert any("they are not repeated" in note for note in notes(reasoning="direct"))
    (note,) = [note for note in notes(reasoning="plan_and_solve") if "different settings" in note]
    assert "reasoning" in note
    assert "calls that stay the same are kept, so fewer are sent than are counted here" in note
