"""Users' functions score answers, as ragbed's own metrics do: in tables, tests, gates and files."""
import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ragbed import open_run
from ragbed.documents import SettingsError
from ragbed.experiments import check_settings
from ragbed.experiments.guests.own_metrics import measuring
from ragbed.experiments.guests.own_metrics.measuring import read_metrics
from ragbed.experiments.guests.own_metrics.record_view import MADE_UP
from ragbed.experiments.metrics import find_metric

CODE = '''
def words(record):
    return len(record.answer.split())

def style(record):
    return {"cites": bool(record.citations), "gold_shown": sum(one.gold for one in record.passages)}

def breaks(record):
    return 1 / len(record.answer)
'''


@pytest.fixture
def place(town, monkeypatch):
    monkeypatch.chdir(town.folder)
    (town.folder / "my.py").write_text(CODE)
    return town.folder / "my.py"


def figures(town, metric):
    summary = json.loads((town.run / "summary.json").read_text())
    return [(one["mean"], one["n"]) for cell in summary["cells"] for one in [cell["metrics"].get(metric)]]


def test_functions_score_a_run_like_metrics_of_ragbed(town, serve, ragbed, place):
    own = [{"metric": "my.py:words", "better": "less", "range": [0, 100]}, "my.py:style", "my.py:breaks"]
    path = town.config(serve(town.reply).url, reasoning=["direct", "least_to_most"], metrics=own, headline="words")
    status, out, err = ragbed("run", path)
    assert status == 0, err
    assert "town, 6 questions: words" in out
    failed = "breaks failed on 2 of 12 answers, which have no value: my.py:9: ZeroDivisionError: division by zero"
    assert failed in out
    # 0 people [1]; the refusal; none; 7 [9]; It is 444.; 555 people [1]
    assert figures(town, "words") == [(pytest.approx(22 / 6), 6)] * 2
    assert figures(town, "cites") == [(pytest.approx(2 / 6), 6)] * 2
    assert figures(town, "gold_shown") == [(1.0, 6)] * 2
    assert figures(town, "breaks")[0][1] == 5
    summary = json.loads((town.run / "summary.json").read_text())
    assert summary["columns"][0] == "words"
    assert summary["columns"][-3:] == ["breaks", "cites", "gold_shown"]
    with open_run(town.run) as run:
        assert sorted(run.frame()["score.words"])[-1] == 11
    assert "words" in (town.run / "report.html").read_text()
    found = ragbed.json("compare", town.run, "--metric", "words", "--metric", "cites")
    assert [one["metric"] for one in found["comparisons"]] == ["words", "cites"]
    assert ragbed("compare", town.run, "--fail-if", "words > baseline + 0.1")[0] == 0
    ragbed.refuses("compare", town.run, "--fail-if", "breaks < baseline", says=["cannot be checked", failed])
    ragbed.refuses("compare", town.run, "--metric", "wordz", says=["did you mean 'words'?"])
    assert ragbed.json("verify", town.run)["agrees"]
    assert "words 11" in ragbed("show", town.run, "1", "--scores")[1]
    assert "breaks: my.py:9: ZeroDivisionError" in ragbed("show", town.run, "3")[1]
    assert ragbed("export", town.run, "all.csv")[0] == 0
    assert {row["score.words"] for row in csv.DictReader((town.folder / "all.csv").read_text().splitlines())} == {
        "3.0", "11.0", "0.0", "2.0"}


@pytest.mark.slow
def test_another_process_checks_a_gate_on_an_own_metric(town, serve, ragbed, place):
    path = town.config(serve(town.reply).url, reasoning=["direct", "least_to_most"], metrics="my.py:words")
    assert ragbed("run", path)[0] == 0
    checked = [subprocess.run([sys.executable, "-m", "ragbed", "compare", str(town.run), "--fail-if", condition],
                              capture_output=True, text=True, check=False) for condition in (
                                  "words < baseline - 1", "words < baseline + 1", "wordz < baseline")]
    assert [one.returncode for one in checked] == [0, 1, 2]
    assert "unknown metric 'wordz'; did you mean 'words'?" in checked[2].stderr


def test_a_narrow_terminal_shows_right_answers_and_refusals_before_own_metrics(
        town, serve, ragbed, place, monkeypatch):
    monkeypatch.setattr("ragbed.experiments.terminal.display._WIDTH", 80)
    monkeypatch.delenv("COLUMNS", raising=False)
    asked = town.own({"question": "What is 2 in town 2?", "answer": "222 people"},
                     {"question": "Who lives in town 9?", "answerable": False},
                     pages={"towns.md": "Town 2 has 222 people."})
    status, out, err = ragbed("run", town.config(
        serve(town.reply).url, benchmark=asked, retriever="bm25", reasoning=["direct", "chain_of_thought"],
        metrics=["my.py:words", "my.py:style"]))
    assert status == 0, err
    header = next(line for line in out.splitlines() if line.startswith("cell"))
    assert header.split() == ["cell", "score", "[95", "%", "CI]", "diff", "p", "correct", "refusals", "cites"]


def test_an_edited_function_scores_the_stored_answers_again_without_a_call(town, serve, ragbed, place):
    server = serve(town.reply)
    path = town.config(server.url, metrics="my.py:words")
    assert ragbed("run", path)[0] == 0
    before, asked = figures(town, "words"), len(server.requests)
    place.write_text(CODE.replace("len(record.answer.split())", "2 * len(record.answer.split())"))
    status, _, err = ragbed("run", path)
    assert status == 0
    assert "the metrics have changed: computed for 6 stored answers, without a call" in err
    assert len(server.requests) == asked
    assert figures(town, "words") == [(pytest.approx(2 * mean), n) for mean, n in before]
    assert "the metrics have changed" not in ragbed("run", path)[2]


def test_metrics_come_and_go_under_the_same_name_without_a_call(town, serve, ragbed, place):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url))[0] == 0
    bare, asked = (town.run / "summary.json").read_bytes(), len(server.requests)
    assert ragbed("run", town.config(server.url, metrics=["my.py:words", "my.py:style"], headline="words"))[0] == 0
    assert figures(town, "words") == [(pytest.approx(22 / 6), 6)]
    assert ragbed("run", town.config(server.url, metrics="my.py:style"))[0] == 0
    assert figures(town, "cites") == [(pytest.approx(2 / 6), 6)]
    with open_run(town.run) as run:
        assert "score.words" not in run.frame()
    place.unlink()
    assert ragbed("run", town.config(server.url))[0] == 0
    assert (town.run / "summary.json").read_bytes() == bare
    assert len(server.requests) == asked


def test_shards_with_metrics_merge_into_the_undivided_run(town, serve, ragbed, place):
    path = town.config(serve(town.reply).url, metrics=["my.py:words", "my.py:breaks"])
    assert ragbed("run", path)[0] == 0
    summary = (town.run / "summary.json").read_bytes()
    shutil.rmtree(town.run)
    for part in ("1/2", "2/2"):
        assert ragbed("run", path, "--shard", part)[0] == 0
    assert ragbed("merge", f"{town.run}.shards")[0] == 0
    assert (town.run / "summary.json").read_bytes() == summary


def test_a_search_and_an_imported_answer_have_metrics_too(town, ragbed, place):
    own = town.own(*({"id": name, "question": f"What is {name}?", "answers": [name], "gold_documents": [f"{name}.txt"]}
                     for name in ("oslo", "rome")), pages={"oslo.txt": "Oslo is a town.", "rome.txt": "Rome is one."})
    (town.folder / "searched.yaml").write_text(json.dumps({
        "out": "runs", "benchmark": own, "reasoning": "search_only", "retriever": {"kind": "bm25", "k": 1},
        "metrics": "my.py:style"}))
    (town.folder / "theirs.jsonl").write_text('{"id": "oslo", "answer": "a"}\n{"id": "rome", "answer": "a b c"}\n')
    for command, name, metric, mean in (
            (("run", "searched.yaml"), "searched", "gold_shown", 1), (
                ("import", "jsonl", "theirs.jsonl", "--benchmark", own["path"], "--out", "runs", "--set",
                 "metrics=my.py:words"), "theirs", "words", 2)):
        status, _, err = ragbed(*command)
        assert status == 0, err
        cell, = json.loads((town.folder / "runs" / name / "summary.json").read_text())["cells"]
        assert cell["metrics"][metric]["mean"] == mean


def test_a_run_without_the_metric_is_scored_by_rescore_and_stays_as_it_is(town, serve, ragbed, place):
    assert ragbed("run", town.config(serve(town.reply).url))[0] == 0
    before = town.hashes()
    found = ragbed.json("rescore", town.run, "--metric", "my.py:style", "--metric",
                        "{metric: 'my.py:words', where: answered}")
    assert found["columns"] == ["cites", "gold_shown", "words"]
    assert found["cells"][0]["metrics"]["words"]["mean"] == pytest.approx((3 + 2 + 3 + 3) / 4)
    assert town.hashes() == before


def test_a_cassette_executes_a_metric_only_if_the_user_names_it(town, serve, ragbed, place):
    assert ragbed("run", town.config(serve(town.reply).url, metrics="my.py:words"))[0] == 0
    summary = (town.run / "summary.json").read_bytes()
    assert ragbed("cassette", "export", town.run)[0] == 0
    shutil.rmtree(town.run)
    replayed = ("run", "--replay", "town.cassette.jsonl.gz", "--out", town.folder / "runs")
    ragbed.refuses(*replayed, says=["its run used the metric my.py:words, which is code"])
    assert ragbed(*replayed, "--set", "metrics=[\"my.py:words\"]")[0] == 0
    assert (town.run / "summary.json").read_bytes() == summary


@pytest.mark.parametrize(("body", "said"), [
    ("return 'yes'", "returned 'yes', which is not a number"),
    ("return float('nan')", "returned nan, which is not in its range, 0 to 1"),
    ("return float('inf')", "returned inf, which is not in its range"),
    ("return 2", "returned 2, which is not in its range, 0 to 1"),
    ("return 10 ** 400", "OverflowError"),
    ("return {'em': 1}", "em is a metric of ragbed; choose another name"),
    ("return {'A b': 1}", "'A b' is not a metric's name"),
    ("return {1: 1}", "returned a dict with 1 keys"),
    ("return [1]", "returned [1], which is not a number"),
    ("record.answer = 'mine'", "FrozenInstanceError"),
    ("record.tags['x'] = 1", "TypeError"),
    ("raise SystemExit(3)", "SystemExit: 3"),
    ("print('aside'); return undefined", "NameError"),
    ("return object.__new__(type('Odd', (), {'__repr__': lambda one: 1 / 0}))", "ZeroDivisionError")])
def test_what_is_no_value_is_an_error_of_one_line(tmp_path, monkeypatch, capsys, body, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text(f"def odd(record):\n    {body}\n")
    one, = read_metrics([{"metric": "odd.py:odd", "range": [0, 1]}]).root
    found = measuring.measure_one(one, one.load()[0], MADE_UP[0])
    assert isinstance(found, str)
    assert said in found
    assert "\n" not in found
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("spec", "said"), [
    ("my.py", "does not name a function; write FILE.py:FUNCTION"),
    ("my.py:Words", "'Words' is not a metric's name"),
    ({"metric": "my.py:words", "name": "em"}, "em is a metric of ragbed"),
    ({"metric": "my.py:words", "range": [1, 0]}, "is not a lowest and a highest value"),
    ({"metric": "my.py:words", "where": "refused"}, "where"),
    ({"metric": "my.py:words", "bettr": "less"}, "did you mean 'better'?"),
    (len, "is a function; name it as 'FILE.py:FUNCTION'")])
def test_settings_of_a_metric_that_cannot_act_are_refused(spec, said):
    with pytest.raises(SettingsError) as error:
        read_metrics([spec])
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "said"), [
    ("word", "my.py:word: there is no function 'word'; did you mean 'words'?"),
    ("late", "the function is async"), ("two", "it cannot take one record (missing a required argument: 'other')")])
def test_a_function_that_cannot_be_a_metric_ends_the_run_before_the_first_call(town, serve, ragbed, place, name, said):
    place.write_text(CODE + "async def late(record):\n    return 1\n\ndef two(record, other):\n    return 1\n")
    server = serve(town.reply)
    ragbed.refuses("run", town.config(server.url, metrics=f"my.py:{name}"), says=[said])
    assert server.requests == []


def test_a_metric_of_a_package_and_two_of_one_name():
    one, = read_metrics(["statistics:mean"]).root
    with pytest.raises(SettingsError, match="two metrics have the name mean; give one of them a different `name`"):
        read_metrics(["statistics:mean", "my.py:mean"])
    assert one.load()[0]((1, 3)) == 2
    with pytest.raises(SettingsError, match="No module named 'nowhere'; a file is named with its ending"):
        read_metrics(["nowhere:mean"]).root[0].load()


@pytest.mark.slow
def test_a_function_that_hangs_is_ended_and_not_called_for_ever(town, serve, ragbed, place, monkeypatch):
    monkeypatch.setattr(measuring, "SECONDS", 0.1)
    place.write_text("CALLS = []\n\ndef spins(record):\n    CALLS.append(1)\n    while True:\n        pass\n")
    assert ragbed("run", town.config(serve(town.reply).url, metrics="my.py:spins"))[0] == 0
    assert {record["result"]["measured"]["spins"] for record in town.records()} == {"it did not return in time"}
    assert len(read_metrics(["my.py:spins"]).root[0].load()[0].__globals__["CALLS"]) == 3


def test_a_function_that_ends_the_process_is_named_and_the_run_goes_on(town, serve, ragbed, place):
    place.write_text("import os\n\ndef leaves(record):\n    os._exit(3)\n")
    status, out, _ = ragbed("run", town.config(serve(town.reply).url, metrics="my.py:leaves"))
    assert status == 0
    assert ("leaves failed on 6 of 6 answers, which have no value: my.py:4: RuntimeError: it called os._exit(3), which "
            "would end the run" in " ".join(out.split()))


def test_a_name_that_two_functions_return_is_an_error_of_the_second(town, serve, ragbed, place):
    place.write_text(CODE + "\ndef more(record):\n    return {'words': 1}\n")
    assert ragbed("run", town.config(serve(town.reply).url, metrics=["my.py:words", "my.py:more"]))[0] == 0
    assert {record["result"]["measured"]["more"] for record in town.records()} == {
        "returned words, which another metric of the run is called"}
    assert figures(town, "words") == [(pytest.approx(22 / 6), 6)]


def test_check_metric_plays_a_function_over_records(town, ragbed, place):
    place.write_text(CODE + "import itertools\nN = itertools.count()\n\ndef counts(record):\n    return next(N)\n")
    found = ragbed.json("check", "metric", "my.py:words")
    assert [one["values"] for one in found["records"]] == [{"words": count} for count in (4, 3, 2, 3, 0, 1)]
    status, out, _ = ragbed("check", "metric", "my.py:breaks")
    assert (status, "6 records, 1 failed, 0 with another value when called again" in out) == (1, True)
    status, out, _ = ragbed("check", "metric", "my.py:counts")
    assert (status, "6 with another value when called again" in out) == (1, True)


def test_the_names_of_a_dict_can_be_told_beforehand_so_that_one_is_the_headline(town, serve, ragbed, place):
    own = {"metric": "my.py:style", "names": ["gold_shown", "cites"], "help": "passages with gold"}
    path = town.config(serve(town.reply).url, metrics=own, headline="cites")
    assert ragbed("run", path)[0] == 0
    assert json.loads((town.run / "summary.json").read_text())["columns"][0] == "cites"
    assert "passages with gold" in (town.run / "report.html").read_text()
    place.write_text(CODE.replace('"cites"', '"quotes"'))
    assert "returned the key 'quotes', which is not among its `names`" in " ".join(ragbed("run", path)[1].split())


def test_the_range_and_the_direction_are_known_without_the_code(place):
    settings = check_settings({"name": "x", "benchmark": {"kind": "jsonl", "path": "q.jsonl"}, "models": "m",
                               "metrics": {"metric": "gone.py:tone", "better": "less", "range": [1, 5]}}, "x")
    metric = find_metric("tone")
    assert (metric.low, metric.high, metric.less, metric.share) == (1, 5, True, False)
    assert "gone.py:tone" in settings.to_yaml()


def test_the_example_of_the_docs_runs_as_it_stands(town, serve, ragbed, place):
    page = (Path(__file__).parents[3] / "docs" / "own-metrics.md").read_text(encoding="utf-8")
    code, settings = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("python", "yaml"))
    place.write_text(code)
    assert ragbed("check", "metric", "my.py:polite")[0] == ragbed("check", "metric", "my.py:style")[0] == 0
    assert ragbed("run", town.config(serve(town.reply).url, **yaml.safe_load(settings)))[0] == 0
    assert figures(town, "words") == [((3 + 2 + 3 + 3) / 4, 4)]
    assert figures(town, "cited") == [(0.5, 4)]
    assert figures(town, "polite") == [(0, 6)]
