"""A live experiment and feedback: threads drawn at random, compared, and what people said as questions to run."""
import asyncio
import json
from functools import partial

import pytest
import yaml
from test_traffic import asking, index, reply, runs_of, served

from ragbed.experiments.benchmarks.jsonl import read_questions
from ragbed.experiments.guests.review.items import open_set
from ragbed.experiments.guests.traffic.traffic import assign_variant
from ragbed.strategies.types import Turn

__all__ = ["index"]


def test_a_thread_stays_where_the_salt_puts_it_and_shares_are_as_asked():
    names = ["base", "new", "other"]
    found = [assign_variant("salt", f"t{number}", names, 0.2) for number in range(20_000)]
    assert dict(found) == {"base": 0.8, "new": 0.1, "other": 0.1}
    counts = [sum(name == one for name, _ in found) / len(found) for one in names]
    assert counts == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    assert found == [assign_variant("salt", f"t{number}", names, 0.2) for number in range(20_000)]
    assert found != [assign_variant("pepper", f"t{number}", names, 0.2) for number in range(20_000)]
    assert assign_variant("salt", "t", names, 0.0) == assign_variant("salt", "t", ["base"], 0.5) == ("base", 1.0)


async def test_threads_are_compared_by_their_first_thumb(serve, index, tmp_path, ragbed):
    folder, url = tmp_path / "traffic", serve(reply).url
    async with served(index, url, folder, "direct", "chain_of_thought", explore=0.25) as (traffic, assistant):
        answer = await assistant["direct"].ask("Where is Oslo?")
        refusal = await assistant["direct"].ask("Who lives there?")
        for number in range(60):
            name, probability = ("chain_of_thought", 0.25) if number % 2 else ("direct", 0.75)
            asked = asking(assistant, "Where is Oslo?", f"t{number}", configuration=name, probability=probability)
            await traffic.start(asked)
            await traffic.end(asked, refusal if number in (0, 2) else answer, {})
            for thumb in ("up" if number % 2 else "down", "up"):  # the first one counts
                await traffic.feedback(asked.record, "ann", thumb)
        wanted = asking(assistant, "Where is Oslo?", "named")
        await traffic.start(wanted)
        await traffic.end(wanted, answer, {})
        await traffic.feedback("named-0", "ann", "up")
        name, probability = await traffic.choose("t1")
        assert (name, probability) == ("chain_of_thought", 0.25)
        assert await traffic.choose("t1", "direct") == ("direct", 1.0)
        assert await traffic.choose("named") == ("direct", 1.0)  # a thread that is kept stays with what was named
        whole = asking(assistant, "Where is Oslo?", "whole", configuration="chain_of_thought", history=())
        await traffic.start(whole)
        await traffic.end(whole, answer, {})
        assert (await traffic.choose("whole"))[1] in (0.25, 0.75)
        found = ragbed.json("compare", folder)  # while it is served
    rows = {(row["measure"], row["configuration"]): row for row in found["rows"]}
    base, new = (rows["thumbs up", name] for name in ("direct", "chain_of_thought"))
    assert (base["threads"], base["share"], base["difference"]) == (30, 0.0, None)
    assert (new["threads"], new["share"], new["difference"], new["blocks"]) == (30, 1.0, 0.99, 30)
    assert new["p"] < 0.001
    assert 0.5 < new["low"] < new["high"] == 1.0
    assert rows["refused", "direct"]["share"] == pytest.approx(2 / 30)
    assert rows["refused", "chain_of_thought"]["p"] > 0.05
    assert rows["failed", "direct"]["share"] == 0.0
    assert "2 threads whose client requested a configuration are left out." in found["notes"]
    status, out, _ = ragbed("compare", folder, "--baseline", "chain_of_thought")
    assert status == 0
    assert "-1.00" in out
    ragbed.refuses("compare", folder, "--baseline", "nobody", says=["no configuration 'nobody'", "direct"])
    ragbed.refuses("compare", folder, "--metric", "em", says=["2 configurations", "name the folder"])


async def test_what_was_said_of_answers_becomes_questions_that_can_be_reviewed_and_run(serve, index, tmp_path, ragbed):
    folder, server = tmp_path / "traffic", serve(reply)
    async with served(index, server.url, folder) as (traffic, assistant):
        ragbed.refuses("questions", "--from", tmp_path, "--out", tmp_path / "q.jsonl", says=["no traffic"])
        ragbed.refuses("questions", "--from", folder, "--out", tmp_path / "q.jsonl", says=["there is no feedback yet"])
        for question, thread, place, thumb, comment in (
                ("Where is Oslo?", "t", 0, "up", "so it is"), ("Who lives there?", "t", 1, "down", "ask the town"),
                ("Where is Oslo?", "again", 0, "down", "too short"), ("Who?", "refused", 0, "up", ""),
                ("Where is Rome?", "silent", 0, None, "")):
            asked = asking(assistant, question, thread, place)
            await traffic.start(asked)
            answer = await assistant["direct"].ask(asked.question)
            standalone = "Who lives in Oslo?" if asked.position else None
            await traffic.end(asked, answer, {"standalone": standalone})
            await traffic.feedback(asked.record, "ann", thumb, comment)
    out = tmp_path / "questions.jsonl"
    counts = ragbed.json("questions", "--from", folder / "traffic.sqlite", "--out", out)
    assert (counts["n"], counts["up"], counts["down"]) == (3, 1, 2)  # of one that was asked twice, what was said last
    follow, oslo, who = map(json.loads, out.read_text().splitlines())
    assert follow["turns"] == [{"question": "Where is Oslo?", "answer": "Norway [1] [9]"}]
    assert (follow["tags"]["standalone"], follow["tags"]["comment"]) == ("Who lives in Oslo?", "ask the town")
    assert "answer" not in follow
    assert len({follow["id"], oslo["id"], who["id"]}) == 3
    assert oslo == {"id": oslo["id"], "question": "Where is Oslo?",
                    "candidates": [{"document": "oslo.md", "format": "plain", "start": 0, "end": 40}],
                    "tags": {"feedback": "down", "comment": "too short", "given": "Norway [1] [9]",
                             "configuration": "direct"}}
    assert (who["answerable"], who["tags"]["feedback"]) == (False, "up")
    assert read_questions(out)[0].turns == (Turn("Where is Oslo?", "Norway [1] [9]"),)
    items = open_set(str(out), index=index).items
    assert items[oslo["id"]].evidence == ()  # what a bad answer cited is not gold until a person says so
    assert items[oslo["id"]].made["candidates"] == oslo["candidates"]
    assert items[follow["id"]].made["line"]["turns"] == [{"question": "Where is Oslo?", "answer": "Norway [1] [9]"}]
    settings = tmp_path / "fix.yaml"
    settings.write_text(yaml.safe_dump({
        "out": str(tmp_path / "runs"), "benchmark": {"kind": "jsonl", "path": str(out)}, "models": f"{server.url}#m",
        "conditions": "retrieved", "retriever": {"index": str(index), "k": 2}, "reasoning": ["direct", "quote_first"]}))
    assert (await asyncio.to_thread(ragbed, "run", settings))[0] == 0
    assert ragbed.json("show", tmp_path / "runs" / "fix", follow["id"])["question"]["turns"]
    (run,) = runs_of(folder)
    ragbed.json("report", run)
    assert ragbed.json("verify", run)["agrees"]
    for more in ((), ("--fresh",)):  # which would take the place of what was answered
        says = ["holds answers of `ragbed serve`", "--set out=runs"]
        await asyncio.to_thread(partial(ragbed.refuses, says=says), "run", run / "config.yaml", *more)
    config = yaml.safe_load((run / "config.yaml").read_text())  # all that was asked, once more
    settings.write_text(yaml.safe_dump({**config, "name": "anew", "out": str(tmp_path / "runs")}))
    assert (await asyncio.to_thread(ragbed, "run", settings))[0] == 0
