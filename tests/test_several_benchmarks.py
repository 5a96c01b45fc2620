"""One file of settings for several benchmarks: a run of its own for each, by one command."""
import json
from pathlib import Path

import yaml

DATA = Path(__file__).parent / "data"
BOTH = ("town-crest", "town-musique")


def two(town, url, **fields):
    """A file that names the town and a few questions of MuSiQue."""
    musique = {"kind": "musique", "path": str(DATA / "musique" / "musique_ans_v1.0_dev.jsonl")}
    return town.config(url, benchmark=[{"kind": "crest", "path": str(town.crest)}, musique], **fields)


def test_one_file_names_several_benchmarks_each_a_run_of_its_own_as_its_paper_has_it(serve, town, ragbed):
    server = serve(town.reply)
    first, second = ragbed.json("run", two(town, server.url))
    assert [made["run"] for made in (first, second)] == [str(town.run.parent / name) for name in BOTH]
    assert [cell["benchmark"] for made in (first, second) for cell in made["cells"]] == ["crest", "musique"]
    resolved = [yaml.safe_load((town.run.parent / name / "config.yaml").read_text()) for name in BOTH]
    assert [(one["brief"], one["benchmark"]["kind"]) for one in resolved] == [(False, "crest"), (True, "musique")]
    asked = len(server.requests)
    status, _, err = ragbed("run", town.folder / "town.yaml")
    assert (status, len(server.requests)) == (0, asked)
    assert "run 2 of 2" in err


def test_what_is_amiss_in_one_benchmark_is_found_before_the_first_call_of_any(serve, town, ragbed):
    server = serve(town.reply)
    crest = {"kind": "crest", "path": str(town.crest)}
    for benchmarks, says in (
            ([crest, {"kind": "musique", "path": str(town.folder / "gone.jsonl")}], ["town-musique", "gone.jsonl"]),
            ([crest, {"kind": "musique"}], ["town-musique", "path"]), ([crest, "musique"], ["benchmark"]),
            ([], ["benchmark: the list is empty"]),
            ([crest, None], ["benchmark.1: expected settings with a kind"]),
            ([{"path": "x"}], ["benchmark.0: expected settings with a kind, such as {kind: crest, "]),
            ([crest, {**crest, "filter": {"language": "fi"}}], ["town-crest-2", "language=fi"])):
        ragbed.refuses("run", town.config(server.url, benchmark=benchmarks), says=says)
    ragbed.refuses("run", two(town, server.url, exclude={"benchmark": "mdbench", "conditions": "provided"}),
                   says=["exclude.0.benchmark: mdbench is not a benchmark of this file; it has crest, musique"])
    other = serve(town.reply)
    ragbed.json("run", town.config(other.url, benchmark={**crest, "limit": 1}, name="town-crest-2"))
    (town.folder / "runs" / "town-crest-2" / "config.yaml").write_text("]")
    ragbed.refuses("run", town.config(server.url, benchmark=[crest, crest]),
                   says=["town-crest-2", "config.yaml is damaged", "no run was started"])
    assert server.requests == []
    assert [path.parent.name for path in (town.folder / "runs").glob("*/records.sqlite")] == ["town-crest-2"]


def test_benchmarks_of_one_kind_that_change_places_do_not_get_each_others_runs(serve, town, ragbed):
    server = serve(town.reply)
    crest = {"kind": "crest", "path": str(town.crest)}
    parts = [{**crest, "limit": 2}, {**crest, "limit": 1}]
    ragbed.json("run", town.config(server.url, benchmark=parts))
    asked = len(server.requests)
    first, second = ragbed.json("run", town.config(server.url, benchmark=parts[::-1]))
    assert ([first["cells"][0]["n"], second["cells"][0]["n"]], len(server.requests)) == ([1, 2], asked + 1)


def test_an_entry_may_be_for_one_of_the_benchmarks(serve, town, ragbed):
    server = serve(town.reply)
    first, second = ragbed.json("run", two(
        town, server.url, conditions=["provided", "closed-book"],
        exclude={"benchmark": "crest", "condition": "closed-book"},
        include={"benchmark": "musique", "condition": "gold"}), "--limit", "2")
    assert [cell["condition"] for cell in first["cells"]] == ["provided"]
    assert [cell["condition"] for cell in second["cells"]] == ["provided", "closed-book", "gold"]
    assert [cell["n"] for cell in (*first["cells"], *second["cells"])] == [2, 2, 2, 2]
    assert first["run"].endswith("town-crest-limit-2")


def test_one_run_that_stops_does_not_keep_the_next_from_its_turn(serve, town, ragbed):
    server = serve(lambda body: {"status": 400} if "in town" in str(body) else "<Answer>x</Answer>")
    status, out, _ = ragbed("run", two(town, server.url), "--json")
    assert (status, [len(made["cells"]) for made in json.loads(out)]) == (1, [1, 1])
    config = two(town, serve(town.reply).url, budget={"tokens": 1}, concurrency=1)
    status, out, err = ragbed("run", config, "--fresh", "--json")
    assert (status, json.loads(out)) == (2, [])
    assert err.count("ragbed: ") == 2


def test_a_plan_of_several_benchmarks_is_that_of_each_and_their_sum(serve, town, ragbed):
    config = two(town, "openai:gpt-4o-mini", models="openai:gpt-4o-mini", judge="openai:gpt-4o")
    plans = ragbed.json("run", config, "--dry-run")
    calls = [plan["total"]["calls"]["most"] for plan in plans]
    _, out, _ = ragbed("run", config, "--dry-run")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "2 runs" in lines
    assert any(line.startswith(f"all {sum(calls)} ") for line in lines)
    assert not (town.folder / "runs").exists()
