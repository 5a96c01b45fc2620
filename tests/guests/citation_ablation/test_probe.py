"""Probes of citations: what a reader of known use makes of less evidence is recovered exactly."""
import json
import re
import shutil
import subprocess
import sys
import time

import pytest
from readers import USES, hotpot, read

from ragbed.strategies.prompting import template

NAMES = ("citations_needed", "citations_unnecessary", "citations_harmful", "citations_enough", "citations_together",
         "uncited_used", "repeats_changed", "probes_failed")
THIRD = 1 / 3
KNOWN = {"honest": (1, 0, 0, 1, 1, 0, 0, 0), "partial": (1, 0, 0, 0, 1, THIRD, 0, 0),
         "padded": (0.5, 0.5, 0, 1, 1, 0, 0, 0), "by-heart": (0, 1, 0, 1, 0, 0, 0, 0),
         "either": (0, 1, 0, 1, 1, 0, 0, 0), "misled": (0, 0.5, 0.5, 1, 1, 0, 0, 0),
         "uncited": (None, None, None, None, None, 0.25, 0, 0), "korean": (0.5, 0.5, 0, 0, 1, 0.5, 0, 0),
         "declined": (None,) * 8}
CALLS = 9 + 53  # the answers; of those that cite two, seven probes, of one six, of none five


@pytest.fixture
def probing(serve, town, tmp_path):
    """Starts a server of a reader; returns it with the settings of a run over the reader's questions."""
    def start(script=read, names=tuple(USES), **settings):
        server = serve(script)
        benchmark = hotpot(tmp_path / "hotpot", names)
        return server, town.config(server.url, **{"benchmark": benchmark, "concurrency": 1, **settings})
    return start


def scores(town):
    return {record["result"]["question"]: tuple(record["result"]["scores"].get(name) for name in NAMES)
            for record in town.records()}


def made(town):
    return town.hashes(), (town.run / "summary.json").read_bytes()


def numbers(body):
    return [int(number) for number in re.findall(r"^\[(\d)\]$", body["messages"][-1]["content"], re.MULTILINE)]


@pytest.mark.slow
def test_the_weight_of_each_citation_is_what_the_reader_is_known_to_use(probing, town, ragbed):
    server, path = probing()
    assert ragbed("run", path, "--probe", "citations")[0] == 0
    assert scores(town) == KNOWN
    assert len(server.requests) == CALLS
    assert "Everything that could be compared agrees" in ragbed("verify", town.run)[1]
    assert "No figure differs" in ragbed("rescore", town.run)[1]


def test_the_others_keep_their_numbers_and_what_stands_last_is_left_out_first(probing, ragbed):
    server, path = probing(names=("padded",))
    assert ragbed("run", path, "--probe", "citations")[0] == 0
    assert [numbers(body) for body, _ in server.requests] == [
        [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3], [1, 2, 4], [1, 3, 4], [1, 3], [2, 3, 4], [2, 4]]
    assert [body.get("seed") for body, _ in server.requests] == [None, 1000, *[None] * 6]


def test_probes_are_asked_with_the_prompts_of_their_cell(probing, ragbed, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "direct_cited.md").write_text(f"{template('direct_cited')} Weigh every word.")
    server, path = probing(names=("padded",), prompts=[str(tmp_path / "mine")])
    assert ragbed("run", path, "--probe", "citations")[0] == 0
    assert ["Weigh every word." in body["messages"][-1]["content"] for body, _ in server.requests] == [True] * 8


@pytest.mark.slow
def test_a_finished_run_is_asked_for_its_probes_alone_and_is_then_the_run_that_was_probed_at_once(
        probing, town, ragbed):
    server, path = probing()
    assert ragbed("run", path)[0] == 0
    assert len(server.requests) == 9
    before = json.loads((town.run / "summary.json").read_text())
    assert ragbed("run", path, "--probe", "citations")[0] == 0
    assert len(server.requests) == CALLS
    later = made(town)
    after = json.loads(later[1])["cells"][0]["metrics"]
    assert {name: after[name] for name in before["cells"][0]["metrics"]} == before["cells"][0]["metrics"]
    assert ragbed("run", path, "--probe", "citations")[0] == 0  # nothing is left to ask
    assert ragbed("run", path, "--probe", "citations", "--journal", "replay")[0] == 0
    assert len(server.requests) == CALLS
    assert made(town) == later
    assert ragbed("run", path)[0] == 0  # without its probes
    assert len(server.requests) == CALLS
    assert json.loads((town.run / "summary.json").read_text()) == before
    assert ragbed("run", path, "--probe", "citations", "--fresh")[0] == 0
    assert made(town) == later


def test_a_cassette_of_a_probed_run_gives_its_probes_again(probing, town, ragbed, tmp_path):
    server, path = probing(names=("honest", "misled"))
    assert ragbed("run", path, "--probe", "citations")[0] == 0
    made_at_first, cassette = made(town), tmp_path / "probed.cassette.jsonl.gz"
    assert ragbed("cassette", "export", town.run, "--out", cassette)[0] == 0
    shutil.rmtree(town.run)
    count = len(server.requests)
    assert ragbed("run", "--replay", cassette, "--out", tmp_path / "runs")[0] == 0
    assert (made(town), len(server.requests)) == (made_at_first, count)


@pytest.mark.slow
def test_killed_between_probes_and_continued_a_run_is_the_one_that_was_never_disturbed(probing, town, ragbed):
    server, path = probing(lambda body: {"text": read(body), "delay": 0.02}, concurrency=4)
    command = [sys.executable, "-m", "ragbed", "run", str(path), "--probe", "citations"]
    for enough in (20, 45):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(server.requests) < enough:
            assert child.poll() is None
            time.sleep(0.002)
        child.kill()
        child.wait()
    assert ragbed("run", path, "--probe", "citations")[0] == 0
    assert scores(town) == KNOWN
    disturbed = made(town)
    assert ragbed("run", path, "--probe", "citations", "--fresh")[0] == 0
    assert made(town) == disturbed


def test_a_probe_that_failed_or_said_nothing_is_counted_and_is_no_change(probing, town, ragbed):
    def failing(body):
        lacks = {1: {"status": 400}, 2: ""}
        return next((line for number, line in lacks.items() if numbers(body) == sorted({1, 2, 3, 4} - {number})),
                    read(body))

    _, path = probing(failing, names=("honest",))
    assert ragbed("run", path, "--probe", "citations")[0] == 0
    assert scores(town) == {"honest": (0, 0, 0, 1, 1, 0, 0, 2 / 7)}
    (record,) = town.records()
    assert [(probe["left_out"], probe["outcome"]) for probe in record["result"]["probes"]][-3:] == [
        ((2,), "malformed"), ((1,), "error"), ((1, 2), "answered")]


def test_an_answer_that_changes_with_nothing_left_out_is_noise(probing, town, ragbed):
    def moody(body):
        return "<Answer>moss [1]</Answer>" if "seed" in body else read(body)

    _, path = probing(moody, names=("honest", "padded"))
    figures = ragbed.json("run", path, "--probe", "citations")
    assert figures["cells"][0]["metrics"]["repeats_changed"]["mean"] == 1
    (view,) = (one for one in figures["views"] if one["name"] == "citation_ablation")
    row = dict(zip(view["header"], view["rows"][0], strict=True))
    assert (row["n"], row["needed"]["mean"], row["less noise"]["mean"], row["less uncited"]["mean"]) == (
        2, 0.75, -0.25, 0.75)


def test_strategies_are_compared_by_what_their_citations_carry(probing, ragbed):
    def reader(body):
        return read(body, cites="AB" if "<Thinking>" in body["messages"][-1]["content"] else "D")

    _, path = probing(reader, names=("honest", "partial", "korean"), reasoning=["direct", "chain_of_thought"])
    figures = ragbed.json("run", path, "--probe", "citations")
    cells = {cell["reasoning"]: cell["metrics"] for cell in figures["cells"]}
    assert [cells["direct"][name]["mean"] for name in NAMES[:6]] == pytest.approx([0, 1, 0, 0, 0, 2 / 3])
    assert [cells["chain_of_thought"][name]["mean"] for name in NAMES[:6]] == [1, 0, 0, 1, 1, 0]
    views = {view["name"]: view for view in figures["views"]}
    tested = {row[0]: dict(zip(views["citation_ablation:compared"]["header"], row, strict=True))
              for row in views["citation_ablation:compared"]["rows"]}
    assert (tested["needed"]["difference"]["mean"], tested["needed"]["up"], tested["cited suffice"]["test"]) == (
        1, 3, "McNemar")
    assert [row[1:4] for row in views["citation_ablation:cost"]["rows"]] == [
        ["answers", 3, 2100], ["ablations", 18, 12600], ["answers", 3, 2100], ["ablations", 21, 14700]]


def test_no_search_of_a_question_finds_what_is_left_out(probing, town, ragbed):
    """A model words the queries, over the passages of two questions; the strategy shows three of all that is found."""
    def searching(body):
        prompt = body["messages"][-1]["content"]
        name = re.findall(r"called (.+?) say", prompt)[-1]
        return f"Fact A of {name}\nFact B of {name}" if "Word it in" in prompt else read(body)

    server, path = probing(searching, names=("honest", "padded"), conditions="retrieved",
                           retriever={"kind": "bm25", "k": 3, "over": "all"}, retrieval="multi_query")
    assert ragbed("run", path, "--probe", "citations")[0] == 0
    result = next(one["result"] for one in town.records() if one["result"]["question"] == "honest")
    found = [one["number"] for one in result["evidence"]]
    shown = [one["number"] for one in result["evidence"] if not one.get("aside")]
    assert (len(found), len(shown), len(result["cited"])) == (4, 3, 2)
    prompts = [re.findall(r"^\[(\d)\]\n(.+\n?Fact . of \w+)", body["messages"][-1]["content"], re.MULTILINE)
               for body, _ in server.requests if "called honest" in body["messages"][-1]["content"]]
    assert len(dict(one for shown in prompts for one in shown)) == len({one for shown in prompts for one in shown})
    told = [{int(number) for number, _ in one} for one in prompts if one]
    assert told[:2] == [set(shown)] * 2
    for probe in result["probes"]:
        assert any(not one & set(probe["left_out"]) for one in told)
    assert set(result["cited"]) in told  # over the cited alone nothing takes the place of the others
    assert scores(town)["honest"][:5] == (1, 0, 0, 1, 1)


def test_a_dry_run_says_how_many_calls_probes_are(probing, ragbed):
    _, path = probing(names=("honest", "padded"))
    plan = ragbed.json("run", path, "--probe", "citations", "--dry-run")
    assert plan["total"]["calls"] == {"least": 2, "most": 2 + 2 * 7}
    assert any(note.startswith("Up to 14 of the calls are probes") for note in plan["notes"])


def test_a_pipeline_is_probed_where_it_is_sent_its_documents_and_not_where_it_finds_them(town, ragbed, tmp_path):
    code = tmp_path / "ours.py"
    code.write_text("def sent(question, documents):\n    return ('sea' if len(documents) == 4 else 'sky') + ' [1]'\n\n"
                    "def own(question):\n    return {'answer': 'sea [1]', 'contexts': ['Fact A of honest.']}\n")
    path = town.config("unused", models=[], reasoning="direct", benchmark=hotpot(tmp_path / "hotpot", ("honest",)),
                       pipelines=[{"kind": "python", "name": name, "factory": f"{code}:{name}"}
                                  for name in ("sent", "own")])
    figures = ragbed.json("run", path, "--probe", "citations")
    needed = {cell["model"]: cell["metrics"].get("citations_needed", {}).get("mean") for cell in figures["cells"]}
    assert needed == {"pipeline:sent": 1, "pipeline:own": None}
