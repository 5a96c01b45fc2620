"""What a server keeps of its answers: a run that what reads runs reads, threads and feedback, whatever ends it."""
import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragbed.agents import Answer, Assistant, AssistantSettings
from ragbed.agents.types import failed_answer
from ragbed.documents import RunError, SettingsError
from ragbed.experiments.guests.traffic.traffic import Traffic
from ragbed.experiments.guests.traffic.traffic_runs import open_run_folder, runs_of
from ragbed.experiments.guests.traffic.turns import ChatTurn
from ragbed.retrieval import build_index
from ragbed.strategies import REFUSAL
from ragbed.strategies.types import Failure

GONE = failed_answer(Failure("stopped", "whoever asked went away"))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "oslo.md").write_text("# Oslo\n\nOslo is the capital of Norway.\n")
    (folder / "rome.md").write_text("# Rome\n\nRome is the capital of Italy.\n")
    build_index([folder], folder / "index")
    return folder / "index"


def asking(assistant: dict[str, Assistant], question: str, thread: str = "t", place: int = 0, owner: str = "ann",
           configuration: str = "direct", **more: Any) -> ChatTurn:
    """A question of a thread to one of the assistants."""
    return ChatTurn(f"{thread}-{place}", thread, place, owner, question, configuration, assistant[configuration],
                    **more)


def reply(body: dict[str, Any]) -> str:
    last = body["messages"][-1]["content"]
    return "<Answer>Norway [1] [9]</Answer>" if "Where is Oslo?" in last else f"<Answer>{REFUSAL}</Answer>"


@contextlib.asynccontextmanager
async def served(index: Path, url: str, folder: Path, *names: str, **more: Any):
    """The traffic of a server of these reasoning strategies, which is called as they are."""
    async with contextlib.AsyncExitStack() as opened:
        assistants = {name: await opened.enter_async_context(Assistant.open(AssistantSettings(
            index=index, model=f"{url}#m", reasoning=name, k=2))) for name in names or ("direct",)}
        yield await opened.enter_async_context(Traffic.open(folder, list(assistants), **more)), assistants


async def play(traffic: Traffic, asked: ChatTurn) -> Answer:
    await traffic.start(asked)
    answer = await asked.assistant.ask(asked.question)
    await traffic.end(asked, answer, {"text": answer.text})
    return answer


async def test_traffic_is_a_run_that_what_reads_runs_reads(serve, index, tmp_path, ragbed):
    folder = tmp_path / "traffic"
    async with served(index, serve(reply).url, folder) as (traffic, assistant):
        for place, question in enumerate(("Where is Oslo?", "And who lives there?")):
            await play(traffic, asking(assistant, question, place=place))
        gone = asking(assistant, "Where is Rome?", "other")
        await traffic.start(gone)
        await traffic.end(gone, GONE, {})
        (run,) = runs_of(folder)
        assert ragbed.json("report", run)["run"] == str(run)  # while it is served
    shown = ragbed.json("show", run, "t-0")
    assert (shown["question"]["text"], shown["of"]) == ("Where is Oslo?", 3)
    assert shown["cells"][0]["text"] == "Norway [1] [9]"
    (cell,) = json.loads((run / "summary.json").read_text())["cells"]
    assert {name: count for name, count in cell["outcomes"].items() if count} == {
        "answered": 1, "refused": 1, "error": 1}
    assert [round(cell["metrics"][name]["mean"], 3) for name in (
        "refused_answerable", "well_formed", "invalid_citations")] == [0.333, 0.667, 0.333]
    assert cell["metrics"].get("unified", {"mean": None})["mean"] is None  # nothing says what is right
    checks = {one["name"]: one["agrees"] for one in ragbed.json("verify", run)["checks"]}
    assert False not in checks.values()
    assert checks["benchmark"]
    causes = ragbed.json("diagnose", run)["cells"][0]["causes"]
    assert (causes["failed"]["mean"], causes["not_scored"]["mean"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (run / "report.html").is_file()
    ragbed.json("export", run, tmp_path / "all.jsonl")
    assert [json.loads(line)["question"] for line in (run / "questions.jsonl").read_text().splitlines()] == [
        "Where is Oslo?", "And who lives there?", "Where is Rome?"]


async def test_threads_and_feedback_are_those_of_their_owner(serve, index, tmp_path):
    async with served(index, serve(reply).url, tmp_path / "traffic") as (traffic, assistant):
        await play(traffic, asking(assistant, "Where is Oslo?"))
        await play(traffic, asking(assistant, "Who?", "stateless", history=()))
        assert await traffic.feedback("t-0", "ann", "up", "so it is")
        assert await traffic.feedback("t-0", "ann", "down", "no")
        assert not await traffic.feedback("t-0", "bob", "up")
        assert not await traffic.feedback("nothing", "ann", "up")
        assert await traffic.thread("t", "ann") == {"turns": [
            {"question": "Where is Oslo?", "answer": {"text": "Norway [1] [9]"},
             "where": "", "feedback": {"thumb": "down", "comment": "no"}}]}
        assert await traffic.thread("t", "bob") is None
        assert [(one["id"], one["title"]) for one in await traffic.threads("ann")] == [("t", "Where is Oslo?")]
        assert await traffic.threads("bob") == []
        assert await traffic.position("t", "ann") == 1
        with pytest.raises(SettingsError, match="there is no thread 't'"):
            await traffic.position("t", "bob")
        with pytest.raises(SettingsError, match="there is no thread 't'"):
            await traffic.start(asking(assistant, "Who?", place=1, owner="bob"))
        with pytest.raises(SettingsError, match="is being answered"):
            await traffic.start(asking(assistant, "Who?"))


async def test_two_hundred_turns_at_once_are_all_kept_and_a_cancelled_one_too(serve, index, tmp_path):
    folder = tmp_path / "traffic"
    async with served(index, serve(reply).url, folder) as (traffic, assistant):
        answer = await assistant["direct"].ask("Where is Oslo?")

        async def turn(number: int) -> None:
            asked = asking(assistant, "Where is Oslo?", f"t{number}")
            await traffic.start(asked)
            await traffic.end(asked, answer, {})

        await asyncio.gather(*map(turn, range(200)))
        asked = asking(assistant, "Where is Oslo?", "cancelled")
        await traffic.start(asked)
        writing = asyncio.create_task(traffic.end(asked, answer, {}))
        await asyncio.sleep(0)
        writing.cancel()
    (run,) = runs_of(folder)
    open_run_folder(run)
    assert json.loads((run / "summary.json").read_text())["cells"][0]["n"] == 201


async def test_other_settings_have_another_run_and_a_folder_has_one_server(serve, index, tmp_path):
    folder, url = tmp_path / "traffic", serve(reply).url
    async with served(index, url, folder, "direct", "chain_of_thought") as (traffic, assistant):
        await play(traffic, asking(assistant, "Where is Oslo?"))
        with pytest.raises(RunError, match="a server uses this folder; stop it, or name another folder of traffic"):
            async with served(index, url, folder):
                pass
    assert [path.name.rpartition("-")[0] for path in runs_of(folder)] == ["direct"]  # the other answered nothing
    async with served(index, url, folder) as (traffic, assistant):
        await play(traffic, asking(assistant, "Where is Oslo?", place=1))
    assert len(runs_of(folder)) == 1
    async with served(index, f"{url}#another", folder) as (traffic, assistant):
        await play(traffic, asking(assistant, "Where is Oslo?", place=2))
    assert len(runs_of(folder)) == 2


async def test_a_run_that_was_removed_keeps_no_server_from_starting(serve, index, tmp_path):
    folder, url = tmp_path / "traffic", serve(reply).url
    async with served(index, url, folder) as (traffic, assistant):
        await traffic.start(asking(assistant, "Where is Oslo?"))
    (run,) = runs_of(folder)
    shutil.rmtree(run)
    async with served(index, url, folder) as (traffic, assistant):
        await play(traffic, asking(assistant, "Where is Oslo?", place=1))
        assert len((await traffic.thread("t", "ann"))["turns"]) == 2


KILLED = """
import asyncio, os, signal, sys
from test_traffic import asking, served
from pathlib import Path

async def main(index, url, folder):
    async with served(Path(index), url, Path(folder)) as (traffic, assistant):
        for place in range(3):
            asked = asking(assistant, "Where is Oslo?", place=place)
            await traffic.start(asked)
            answer = await assistant["direct"].ask("Where is Oslo?")
            if place == 1:  # killed between the two files
                traffic._finish = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
            if place == 0:
                await traffic.start(asking(assistant, "Where is Rome?", "interrupted"))
            await traffic.end(asked, answer, {})

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
async def test_what_a_kill_leaves_has_one_record_for_each_question(serve, index, tmp_path, ragbed):
    folder, url = tmp_path / "traffic", serve(reply).url
    done = subprocess.run([sys.executable, "-c", KILLED, str(index), url, str(folder)], cwd=Path(__file__).parent,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert done.returncode == -signal.SIGKILL
    for _ in range(2):  # nothing is doubled by starting again
        async with served(index, url, folder) as (traffic, _):
            assert await traffic.position("t", "ann") == 2
    (run,) = runs_of(folder)
    found = {id: ragbed.json("show", run, id)["cells"][0]["outcome"] for id in ("t-0", "t-1", "interrupted-0")}
    assert found == {"t-0": "answered", "t-1": "answered", "interrupted-0": "error"}
    assert json.loads((run / "summary.json").read_text())["cells"][0]["n"] == 3
    assert ragbed.json("verify", run)["agrees"]
