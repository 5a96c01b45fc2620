"""What is served of a run, of settings, and of an index: each cell that can answer, with what was measured of it."""
import json
from pathlib import Path

import httpx2 as httpx
import pytest
import yaml
from sealed import seal
from serving import index_of, served

from ragbed.documents import SettingsError
from ragbed.experiments import run
from ragbed.experiments.guests.serving.configurations import read_target

QUESTIONS = [{"question": "Which country is Oslo the capital of?", "answer": "Norway", "gold_documents": ["oslo.txt"]},
             {"question": "Which country is Rome the capital of?", "answer": "Italy", "gold_documents": ["rome.txt"]}]


@pytest.fixture
def settings(serve, tmp_path):
    """A run of two strategies under two conditions, over an index, whose model is right about Oslo alone."""
    index = index_of(tmp_path)
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS))
    model = serve(lambda body: "<Answer>Norway [1]</Answer>")
    content = {"name": "capitals", "out": str(tmp_path / "runs"), "models": f"{model.url}#m",
               "benchmark": {"kind": "jsonl", "path": str(tmp_path / "questions.jsonl")},
               "reasoning": ["direct", "chain_of_thought"], "conditions": ["retrieved", "gold"], "brief": True,
               "retriever": {"kind": "bm25", "index": str(index), "k": 1}}
    path = tmp_path / "capitals.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_finished_run_serves_the_cells_that_search_with_their_scores(settings, tmp_path):
    with run(str(settings)) as finished:
        rows = finished.frame()
    assert len(rows) == 8
    for target in (tmp_path / "runs" / "capitals", settings):
        direct, chain = read_target(target, {})
        assert (direct.name, chain.name) == ("direct-retrieved", "chain_of_thought-retrieved")
        assert (direct.settings.k, direct.settings.brief, direct.settings.retriever.kind) == (1, True, "bm25")
        assert (direct.measured.mean, direct.measured.n, direct.measured.run) == (0.5, 2, "capitals")
        assert str(direct.measured).startswith(f"{direct.measured.metric} 0.50 [")
    with served(read_target(settings, {}), tmp_path / "traffic") as url, httpx.Client(base_url=url) as client:
        models = client.get("/v1/models").json()["data"]
        assert [model["id"] for model in models] == ["direct-retrieved", "chain_of_thought-retrieved"]
        assert "on 2 questions, run capitals of 20" in models[0]["description"]
        told = client.get("/api/configurations").json()["configurations"]
        assert told[0]["measured"]["mean"] == 0.5


def test_what_is_served_asks_with_the_very_prompts_that_were_measured(serve, settings, tmp_path):
    with run(str(settings)):
        pass
    path = tmp_path / "capitals.yaml"
    config = yaml.safe_load(path.read_text())
    model = serve(lambda body: "<Answer>Norway [1]</Answer>")
    config["models"], config["name"] = f"{model.url}#m", "again"
    path.write_text(yaml.safe_dump(config))
    with run(str(path)):
        pass
    measured = {json.dumps(body["messages"]) for body, _ in model.requests}
    model.requests.clear()
    with served(read_target(path, {}), tmp_path / "traffic") as url, httpx.Client(base_url=url) as client:
        for name in ("direct-retrieved", "chain_of_thought-retrieved"):
            body = {"model": name, "messages": [{"role": "user", "content": QUESTIONS[0]["question"]}]}
            assert client.post("/v1/chat/completions", json=body).status_code == 200
    assert len(model.requests) == 2
    assert {json.dumps(body["messages"]) for body, _ in model.requests} <= measured


def test_it_is_said_that_prompts_have_changed_since_they_were_measured(settings, tmp_path):
    with run(str(settings)):
        pass
    manifest = tmp_path / "runs" / "capitals" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "prompts": "of another day"}))
    seal(manifest.parent)
    assert str(read_target(settings, {})[0].measured).endswith("; its prompts or strategies have changed since")


def test_settings_that_did_not_run_are_served_as_not_measured(settings):
    assert [one.measured for one in read_target(settings, {})] == [None, None]


def test_an_index_is_served_with_what_the_options_say(settings, tmp_path):
    (one,) = read_target(tmp_path / "index", {"model": "http://127.0.0.1:9/v1#m", "reasoning": "direct", "k": 3})
    assert (one.name, one.settings.k, one.measured) == ("direct", 3, None)


@pytest.mark.parametrize(("changes", "said"), [
    ({"conditions": "gold"}, "none of its cells can be served"),
    ({"reasoning": "search_only"}, "none of its cells can be served")])
def test_a_run_without_a_cell_that_answers_over_an_index_is_refused(settings, changes, said):
    content = {**yaml.safe_load(settings.read_text()), **changes}
    if "reasoning" in changes:
        content = {name: value for name, value in content.items() if name not in ("models", "conditions", "brief")}
    settings.write_text(yaml.safe_dump(content))
    with pytest.raises(SettingsError, match=said):
        read_target(settings, {})


def test_a_plug_in_is_executed_for_a_file_of_settings_and_never_for_a_runs_folder(settings, tmp_path):
    plugin = Path(tmp_path / "own.py")
    plugin.write_text("from ragbed.strategies import answer\n\n\ndef recipe(task):\n"
                      "    evidence = yield from task.gather(task.question)\n"
                      "    return (yield from answer(task, 'direct', evidence, thinks=False))\n")
    content = {**yaml.safe_load(settings.read_text()), "reasoning": f"{plugin}:recipe", "conditions": "retrieved"}
    settings.write_text(yaml.safe_dump(content))
    assert len(read_target(settings, {})) == 1
    with run(str(settings)):
        pass
    (one,) = read_target(settings, {})
    assert (one.measured.mean, one.measured.changed) == (0.5, False)
    with pytest.raises(SettingsError, match="name the settings file"):
        read_target(tmp_path / "runs" / "capitals", {})

