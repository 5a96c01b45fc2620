"""Fixtures that several files share: a scripted chat server, the command line, and a small run to give it."""
import contextlib
import gc
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml

from ragbed.strategies import REFUSAL

# Children of the tests, and the next run, need not compile everything again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ["RAGBED_CALL_CACHE"] = "off"  # tests count calls
os.environ["RAGBED_MODEL"] = "smollm2-135m"  # whatever else runs on this machine
# For `make test`.
hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("ci"), max_examples=30)
# Where memory can hold the files of all tests, they are kept there: a run waits for the disk forty times.
if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")
# Several workers share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
gc.disable()  # nothing that is imported or collected is garbage
# For what the tests of several files share, such as report_runs.
sys.path += map(str, (Path(__file__).parent, *(Path(__file__).parent / "guests").iterdir()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Half as many workers again as there are cores, unless told: tests wait for clocks and servers a third of their
    time."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else max((os.cpu_count() or 1) * 3 // 2, 1)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public datasets that are not shipped; what needs it is skipped where it is not here."""
    folder = os.environ.get("RAGBED_DATA")
    if not folder:
        pytest.skip("the raw data is not here; RAGBED_DATA names its folder")
    return Path(folder)


@pytest.fixture(autouse=True, scope="session")
def _made_once() -> Iterator[None]:
    from made_once import made_once

    with made_once():
        yield


@pytest.fixture(autouse=True, scope="session")
def _interrupts() -> Iterator[None]:
    """Interrupts reach the tests and their children also where a shell started pytest in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def serve():
    """Starts scripted servers, which end with the test."""
    from scripted_server import ScriptedServer

    running = []

    def start(script):
        running.append(ScriptedServer(script))
        return running[-1]

    yield start
    for server in running:
        server.close()


@pytest.fixture(scope="session")
def capitals(tmp_path_factory):
    """An index over two short pages."""
    from ragbed.retrieval import build_index

    folder = tmp_path_factory.mktemp("capitals")
    (folder / "oslo.txt").write_text("Oslo is the capital of Norway.")
    (folder / "rome.txt").write_text("Rome is the capital of Italy.")
    build_index([folder / "oslo.txt", folder / "rome.txt"], folder / "index")
    return folder / "index"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder of what the first test of a module makes, for all of them."""
    return tmp_path_factory.mktemp("kept") / "made"


@pytest.fixture
def ragbed(monkeypatch, capsys):
    """The command `ragbed` in this process."""
    from command_line import CommandLine

    return CommandLine(monkeypatch, capsys)


_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Town:
    """A run called `town`: six questions of CReSt's shape, with two documents each, the first of them gold."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run, self.crest = folder, folder / "runs" / "town", folder / "crest"
        self.crest.mkdir()
        self.write([self.row(number) for number in range(6)])

    @staticmethod
    def row(number: int, **changes: Any) -> dict[str, Any]:
        pages = [(f"<table><tr><td>Town {number}</td><td>{number * 111} people</td></tr></table>", "html", True),
                 (f"The mayor of town {number + 1} is Ada.", "text", False)]
        documents = [{"docid": place, "content": content, "type": kind, "source_path": f"town/{number}-{place}",
                      "ground": ground, "citation_idx": None} for place, (content, kind, ground) in enumerate(pages)]
        return {"id": number, "query": f"How many people live in town {number}?", "answer": f"{number * 111} people",
                "documents": json.dumps(documents), "citation_ids": "[0]", "reasoning_type": [],
                "meta": json.dumps({"language": "en", "difficulty_type": "SimpleQA"}), **changes}

    def write(self, rows: list[dict[str, Any]]) -> None:
        """The first question is the unanswerable one."""
        for name, part in (("refusal", rows[:1]), ("non_refusal", rows[1:])):
            (self.crest / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))

    def own(self, *questions: dict[str, Any], pages: dict[str, str] | None = None) -> dict[str, str]:
        """The settings of a benchmark of one's own questions, over a corpus of these pages."""
        path, corpus = self.folder / "own.jsonl", self.folder / "pages"
        path.write_text("".join(json.dumps(question) + "\n" for question in questions))
        for name, text in (pages or {}).items():
            corpus.mkdir(exist_ok=True)
            (corpus / name).write_text(text)
        return {"kind": "jsonl", "path": str(path), **({"corpus": str(corpus)} if pages else {})}

    def config(self, url: str, file: str = "town", **settings: Any) -> Path:
        """A settings file."""
        content = {"out": str(self.folder / "runs"), "benchmark": {"kind": "crest", "path": str(self.crest)},
                   "models": f"{url}#m", "reasoning": "direct", "layout": "documents_first", "concurrency": 4,
                   "calls": {"calls": {"attempts": 2, "seconds": 60}},
                   **settings}
        path = self.folder / f"{file}.yaml"
        path.write_text(yaml.dump(content, Dumper=_Dumper))
        return path

    def records(self) -> list[dict[str, Any]]:
        from ragbed.experiments import RunFolder

        with contextlib.closing(RunFolder.existing(self.run)) as folder:
            return [record.model_dump() for record in folder.records(traces=True)]

    def hashes(self) -> list[str]:
        """The hash of every result."""
        with contextlib.closing(sqlite3.connect(self.run / "records.sqlite")) as connection:
            return [row[0] for row in connection.execute("SELECT hash FROM records ORDER BY cell, question")]

    @staticmethod
    def reply(body: dict[str, Any]) -> str:
        """A model's reply to a request about this town, which depends on the request alone."""
        last = body["messages"][-1]["content"]
        number = int((re.findall(r"in town (\d+)", last) or ["0"])[-1])
        if "simpler questions" in last:
            return f"1. What is town {number}?\n2. How many people live in town {number}?\n3. How many are counted?"
        return [f"<Answer>{number * 111} people [1]</Answer>", f"<Answer>{REFUSAL}</Answer>", "",
                "<Answer>7 [9]</Answer>", f"It is {number * 111}."][number % 5]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is embedded is kept for this test alone."""
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


@pytest.fixture(scope="module")
def browser():
    """A Chromium; without one the test is skipped."""
    from chromium import launched

    with launched() as started:
        yield started


@pytest.fixture
def visit(browser):
    """Opens an address in the browser, and makes sure that the page stays by itself."""
    from chromium import visiting

    yield from visiting(browser)
