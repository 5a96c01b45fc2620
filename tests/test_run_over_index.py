"""Runs that search an index: what each condition shows, another embedder, mistyped gold, an interrupt."""
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from patience import SECONDS
from test_server_embedder import serving, usual

from ragbed.experiments import read_settings
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.retrieval import build_index
from ragbed.retrieval.storage.manifest import MANIFEST, read_manifest, write_manifest


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "oslo.md").write_text("# Oslo\n\nOslo is the capital of Norway.\n")
    (folder / "rome.md").write_text("# Rome\n\nRome is the capital of Italy.\n")
    build_index([folder], folder / "index")
    return folder / "index"


def test_an_index_of_another_embedder_is_one_line_before_any_call_is_made(ragbed, serve, town, index):
    copy = town.folder / "index"
    copy.mkdir()
    for path in index.iterdir():
        if path.name != MANIFEST:
            (copy / path.name).write_bytes(path.read_bytes())
    manifest = read_manifest(index)
    other = manifest.embedder.model_copy(update={"identity": "sha256:other"})
    write_manifest(manifest.model_copy(update={"embedder": other}), copy)
    ragbed.refuses("search", "x", "--index", copy, says=["sha256:other", "rebuild the index"])
    server = serve(town.reply)
    ragbed.refuses("ask", "x", "--index", copy, "--model", f"{server.url}#m", says=["sha256:other"])
    path = town.config(server.url, conditions=["closed-book", "retrieved"], retriever={"index": str(copy)})
    ragbed.refuses("run", path, says=["sha256:other", "rebuild the index"])
    assert server.requests == []


def test_a_gold_document_that_is_nowhere_is_pointed_out(ragbed, serve, town, index):
    own = town.own({"question": "Where is Oslo?", "answer": "Norway", "gold_documents": ["oslo.md", "osló.md"]},
                   {"question": "Who?", "answerable": False, "gold_documents": ["left-out.md"]})
    path = town.config(serve(lambda _: "<Answer>Norway [1]</Answer>").url, benchmark=own, conditions="retrieved",
                       retriever={"index": str(index), "k": 2})
    status, _, err = ragbed("run", path)
    assert status == 0
    assert "searches never find them: osló.md; check their names" in err
    assert "left-out" not in err


@pytest.mark.slow
def test_an_interrupt_ends_the_building_of_an_index_at_once(town, tmp_path):
    asked, go = threading.Event(), threading.Event()

    def script(body):
        asked.set()
        return usual(body) if go.wait(SECONDS) else (500, {}, {})

    own = town.own({"question": "Where?"}, pages={f"{number}.txt": f"Town {number}" for number in range(40)})
    with serving(script) as (url, seen):
        build = {"embedder": {"kind": "server", "model": f"{url}#bge", "batch": 1, "concurrency": 1, "dimensions": 3}}
        path = town.config(url, benchmark=own, conditions="retrieved", retriever={"build": build})
        child = subprocess.Popen([sys.executable, "-m", "ragbed", "run", str(path)], stderr=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL, text=True,
                                 env=os.environ | {"RAGBED_CACHE": str(tmp_path / "cache")})
        while not asked.wait(0.01):
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        go.set()  # what is under way is waited for, and nothing more is asked
        _, err = child.communicate(timeout=SECONDS)
        assert (child.returncode, "Traceback" in err) == (130, False)
        assert err.splitlines()[-1].startswith("interrupted; ")
        assert len(seen) < 20
    assert '"stage": "write"' not in err


def test_retrievers_over_one_corpus_share_one_index(serve, town):
    built: list[str] = []

    def stage(name: str, done: int, total: int | None) -> None:
        built.extend([name] if name == "write" and done else [])

    own = town.own({"question": "Where?"}, pages={"oslo.txt": "Oslo is the capital of Norway."})
    settings = read_settings(town.config(serve(town.reply).url, benchmark=own, conditions="retrieved",
                                         retriever=["dense", "bm25", {"kind": "dense", "name": "wide", "k": 9}]))
    asyncio.run(run(settings, RunCallbacks(stage, lambda begun: None, lambda record: None)))
    assert len(town.hashes()) == 3
    assert built == ["write"]


@pytest.mark.slow
def test_an_index_that_changed_since_is_searched_again_and_never_mixed_into_a_run(ragbed, serve, town):
    page = town.folder / "pages" / "oslo.md"
    own = town.own(*({"question": f"Question {number}?"} for number in range(4)),
                   pages={page.name: "Oslo is the capital of Norway."})
    server = serve(lambda _: {"status": 401} if len(server.requests) == 3 else "<Answer>Norway [1]</Answer>")
    path = town.config(server.url, benchmark=own, conditions="retrieved", concurrency=1)
    ragbed.refuses("run", path, says=["HTTP 401"])
    assert len(town.hashes()) == 2
    page.write_text("Oslo lies in Norway.")
    made = []
    for text, options, asked in (("Oslo lies in Norway.", [], 4), ("Oslo is the capital of Norway.", [], 4),
                                 ("Oslo lies in Norway.", ["--retry"], 4), ("Oslo lies in Norway.", [], 0),
                                 ("Oslo is the capital of Norway.", ["--journal", "live"], 4)):
        page.write_text(text)
        before = len(server.requests)
        status, _, err = ragbed("run", path, *options)
        assert (status, "the index of dense@5 in plain has changed" in err) == (0, asked > 0)
        assert len(server.requests) - before == asked
        made.append((town.hashes(), (town.run / "summary.json").read_bytes()))
    assert made[0] == made[2] == made[3] != made[1] == made[4]
    page.write_text("Oslo lies in Norway.")
    before = len(server.requests)
    assert ragbed("run", path, "--journal", "replay")[0] == 0  # which gives again what was found
    assert (town.hashes(), (town.run / "summary.json").read_bytes()) == made[-1]
    assert len(server.requests) == before
    assert ragbed("run", path, "--fresh")[0] == 0
    assert len(server.requests) == before + 4


def test_an_index_that_is_gone_leaves_the_old_run_as_it_is(ragbed, serve, town, index):
    copy = town.folder / "index"
    shutil.copytree(index, copy)
    path = town.config(serve(lambda _: "<Answer>Norway [1]</Answer>").url, benchmark=town.own({"question": "Where?"}),
                       conditions="retrieved", retriever={"index": str(copy)})
    assert ragbed("run", path)[0] == 0
    names = ("summary.json", "report.html")
    before = town.records(), [(town.run / name).read_bytes() for name in names]
    copy.rename(town.folder / "moved")
    for options in (["--retry"], ["--fresh"]):
        ragbed.refuses("run", path, *options, says=["index", "does not exist"])
        assert (town.records(), [(town.run / name).read_bytes() for name in names]) == before


def test_the_conditions_show_what_they_say(ragbed, serve, town, index):
    own = town.own({"id": "a", "question": "Oslo is the capital of what?", "answer": "Norway",
                    "gold_documents": ["oslo.md"]},
                   {"id": "b", "question": "Rome is the capital of what?", "answer": "Italy",
                    "gold_documents": ["rome.md"]})
    server = serve(lambda _: "<Answer>Norway [1]</Answer>")
    retrievers = [{"index": str(index), "k": k} for k in (1, 2)]
    path = town.config(server.url, benchmark=own, conditions=["gold", "retrieved", "closed-book"],
                       retriever=retrievers)
    status, out, _ = ragbed("run", path, "--json")
    assert status == 0
    cells = {(cell["condition"], cell["retrieval"], cell["retriever"]): cell for cell in json.loads(out)["cells"]}
    assert set(cells) == {("gold", None, "dense@1"), ("retrieved", "once", "dense@1"),
                          ("retrieved", "once", "dense@2"), ("closed-book", None, None)}
    shown = {(one["result"]["cell"], one["result"]["question"]):
             [passage["source"] for passage in one["result"]["evidence"]] for one in town.records()}
    by_name = {name: [shown[cell["id"], question] for question in "ab"] for name, cell in cells.items()}
    assert by_name["gold", None, "dense@1"] == [["oslo.md"], ["rome.md"]]
    assert by_name["retrieved", "once", "dense@1"] == [["oslo.md"], ["rome.md"]]
    assert by_name["retrieved", "once", "dense@2"] == [["oslo.md", "rome.md"], ["rome.md", "oslo.md"]]
    assert by_name["closed-book", None, None] == [[], []]
    gold = {one["result"]["question"]: one["result"]["gold_in_view"] for one in town.records()
            if one["result"]["cell"] == cells["retrieved", "once", "dense@1"]["id"]}
    assert gold == {"a": True, "b": True}


def test_no_retrieval_needs_no_index_and_rules_that_allow_for_it(ragbed, serve, town):
    own = town.own({"question": "Oslo is the capital of what?", "answer": "Norway"})
    asking = {"benchmark": own, "conditions": "retrieved", "retrieval": "none"}
    for rules in ("grounded", "reading"):
        ragbed.refuses("run", town.config("http://127.0.0.1:9/v1", rules=rules, **asking),
                       says=["retrieval: none", f"the rules {rules}", "closed-book"])
    (cell,) = ragbed.json("run", town.config(serve(lambda _: "Norway").url, rules="open", **asking))["cells"]
    assert [cell[name] for name in ("retrieval", "retriever", "format")] == ["none", None, None]


def test_gold_from_an_index_is_another_cell_for_each_format_and_index(ragbed, serve, town):
    own = town.own({"question": "Oslo is the capital of what?", "answer": "Norway",
                    "gold_documents": ["oslo.html"]},
                   pages={"oslo.html": "<h1>Oslo</h1><p>Oslo is the capital of Norway.</p>"})
    server = serve(lambda _: "<Answer>Norway [1]</Answer>")
    path = town.config(server.url, benchmark=own, conditions="gold", formats=["plain", "html"],
                       retriever=[{"k": 1}, {"k": 2}])
    assert [(cell["format"], cell["retriever"]) for cell in ragbed.json("run", path)["cells"]] == [
        ("plain", "dense@1"), ("html", "dense@1")]
    prompts = [body["messages"][1]["content"] for body, _ in server.requests]
    assert sorted("<h1>" in prompt for prompt in prompts) == [False, True]
