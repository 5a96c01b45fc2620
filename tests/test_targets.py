"""The target of `ragbed run`: a file or a benchmark's name, and which questions."""
import json
import re

import pytest

from ragbed.experiments import BENCHMARKS
from ragbed.experiments.settings.targets import Part, resolve_target
from ragbed.strategies import CRESTS

ALL = Part()


def of(kind="crest", path="there", part=ALL, **options):
    settings, = resolve_target(kind, path, options, part)
    return settings


def test_a_benchmark_by_its_name_is_run_as_its_paper_ran_it():
    settings = of()
    assert (settings.name, settings.benchmark.kind, settings.benchmark.path) == ("crest", "crest", "there")
    assert ([one.spec for one in settings.reasoning], settings.layout, settings.conditions) == (
        ["chain_of_thought"], "as_published", ["provided"])
    assert of(path=None).benchmark.path == "hub:upstage/CReSt"


def test_options_are_settings():
    settings = of(models=["openai:a", "openai:b"], reasoning=["all"], conditions=["gold"], judge="openai:c",
                  perturbations=["shuffle", "negatives@2"], scoring="as-published", name="mine", out="elsewhere")
    assert settings.models == ["openai:a", "openai:b"]
    assert [one.spec for one in settings.reasoning] == list(CRESTS)
    assert (settings.conditions, settings.perturbations) == (["gold"], ["shuffle", "negatives@2"])
    assert (settings.judge.name, settings.scoring, str(settings.folder)) == (
        "openai:c", "as-published", "elsewhere/mine")


def test_set_takes_any_setting_by_its_dotted_key():
    settings = of("hotpotqa", set=["limits.max_tokens=64", "limits.calls=9", "benchmark.units=sentences",
                                   "show=[question, sub_questions]", "brief=false"])
    assert (settings.limits.max_tokens, settings.limits.calls, settings.benchmark.units) == (64, 9, "sentences")
    assert (settings.show, settings.brief) == (["question", "sub_questions"], False)


@pytest.mark.parametrize(("part", "name"), [
    (Part(limit=3), "crest-limit-3"), (Part(sample=20), "crest-sample-20"),
    (Part(sample=20, seed=1, limit=5), "crest-sample-20-seed-1-limit-5"),
    (Part(filter=("language=en", "difficulty_type=SimpleQA")), "crest-language-en-difficulty_type-SimpleQA")])
def test_a_part_of_the_questions_is_a_separate_run(part, name):
    assert of(part=part).name == name
    assert of(part=part, name="mine").name == "mine"


def test_the_part_reaches_the_benchmark_and_a_long_name_is_cut_to_a_unique_one():
    settings = of(part=Part(limit=5, sample=9, seed=2, filter=("a=b=c",)))
    chosen = settings.benchmark
    assert (chosen.limit, chosen.sample, chosen.seed, chosen.filter) == (5, 9, 2, {"a": "b=c"})
    long, longer = (of(part=Part(filter=(f"tag={'x' * 90}{end}",))).name for end in "ab")
    assert len(long) == len(longer) == 80
    assert long != longer


def test_a_file_goes_before_a_kind_and_a_folder_of_that_name_does_not(town, monkeypatch):
    monkeypatch.chdir(town.folder)
    assert of(path="crest").benchmark.path == "crest"
    town.config("http://127.0.0.1:9/v1", "demo").rename(town.folder / "demo")
    settings = of("demo", None, Part(sample=2))
    assert (settings.benchmark.kind, settings.benchmark.sample, settings.name) == ("crest", 2, "demo-sample-2")


@pytest.mark.parametrize(("arguments", "says"), [
    (["guess"], ["guess: neither a file nor a benchmark; the benchmarks are", "crest", "jsonl"]),
    (["jsonl"], ["jsonl: PATH is missing, as in `ragbed run jsonl PATH`"]),
    (["demo", "folder"], ["demo takes no PATH"]),
    (["demo", "--only", "language"], ["TAG=VALUE"]), (["mrceva"], ["did you mean 'mrceval'?"]),
    (["demo", "--reasoning", "dirct"], ["did you mean 'direct'?"]),
    (["demo", "--retrieval", "onec"], ["did you mean 'once'?"]),
    (["demo", "--condition", "retreived"], ["unknown value 'retreived'; did you mean 'retrieved'?"]),
    (["demo", "--perturbation", "shufle"], ["did you mean 'shuffle'?"]),
    (["demo", "--set", "judge={kind: modle}"], ["did you mean 'model'?"]),
    (["demo", "--set", "retriever=desne"], ["did you mean 'dense'?"]),
    (["demo", "--set", "questions=keyword"], ["did you mean 'keywords'?"]),
    (["demo", "--set", "benchmark.kidn=demo"], ["unknown setting 'benchmark.kidn'", "did you mean 'kind'?"]),
    (["demo", "--only", "sourc=x"], ["no question has sourc=x; did you mean 'source'?"]),
    (["demo", "--reasoning", "guess"], ["unknown reasoning strategy 'guess'"]),
    (["demo", "--condition", "guess"], ["conditions", "choose from: closed-book"]),
    (["demo", "--set", "brief"], ["KEY=VALUE"]),
    (["demo", "--set", "limits.token=5"], ["unknown setting 'limits.token'; did you mean 'tokens'?"]),
    ([""], ["TARGET is empty; give a YAML settings file, a file of questions, or a benchmark's name"]),
    (["/"], ["/ is a folder; give a YAML settings file, a file of questions, or"]),
    (["a" * 5000], ["File name too long"]), (["mrceval", "a" * 5000], ["File name too long"]),
    (["mrceval", ""], ["an empty path"]), (["mrceval", " "], ["an empty path"]),
    (["demo", "--set", "name=x", "--set", "name=y"], ["name is given twice"]),
    (["mrceval", "there", "--set", "benchmark.path=here"], ["benchmark.path is given twice"]),
    (["demo", "--limit", "3", "--set", "benchmark.limit=5"],
     ["--limit and --set benchmark.limit are the same setting"]),
    (["demo", "--set", "seed=" + "9" * 5000], ["not valid YAML", "an integer that is malformed or larger than 9223"]),
    (["demo", "--set", "name=2020-13-45"], ["not valid YAML: a date"]),
    (["demo", "--set", 'out="a\\0b"'], ["out: a path cannot contain the character NUL"]),
    (["demo", "--set", "repeats=99999999999"], ["repeats", "less than or equal to 1000"]),
    (["demo", "--set", "..a=5"], ["KEY=VALUE"]),
    (["demo", "--set", "benchmark.kind=crest"], ["a different benchmark from demo"]),
    (["multihop_rag", "--set", "benchmark.size=0"], ["benchmark.size", "greater than or equal to 1"]),
    (["demo", "--set", "retriever=[{kind: dense, name: a}, {kind: dense}, {kind: dense, name: dense@5}]"],
     ["retriever: two have the name dense@5"]),
    (["demo", "--set", "brief=[1"], ["brief", "not valid YAML"]),
    (["demo", "--name", "a/b"], ["cannot be the name of a folder"]),
])
def test_invalid_input_is_a_one_line_error(ragbed, arguments, says):
    ragbed.refuses("run", *arguments, says=says)


def test_a_settings_file_takes_no_benchmark_options(ragbed, town):
    path = town.config("http://127.0.0.1:9/v1")
    for option in (["folder"], ["--model", "openai:a"], ["--perturbation", "shuffle"]):
        ragbed.refuses("run", path, *option, says=["works only with the name of a benchmark", "town.yaml"])


def test_a_run_by_benchmark_name_works_and_names_its_retry_command(serve, town, ragbed):
    server = serve(lambda body: {"status": 400} if "live in town 4" in str(body) else town.reply(body))
    words = ("run", "crest", town.crest, "--model", f"{server.url}#m", "--out", town.folder / "runs", "--only",
             "language=en", "--reasoning", "direct")
    status, out, err = ragbed(*words, "--fresh", "--journal", "live", "--json")
    assert status == 0
    (cell,) = json.loads(out)["cells"]
    assert (cell["n"], cell["reasoning"], cell["layout"]) == (6, "direct", "as_published")
    assert (town.folder / "runs" / "crest-language-en" / "summary.json").exists()
    assert re.search(r"`ragbed run crest \S+ --model \S+ --out \S+ --only language=en --reasoning direct --retry` "
                     "asks them again", err)


def test_as_published_scoring_implies_the_benchmarks_settings():
    assert of("mdbench").benchmark.unwrap is True
    assert of("mdbench", scoring="as-published").benchmark.unwrap is False
    assert of("mdbench", scoring="as-published", set=["benchmark.unwrap=true"]).benchmark.unwrap is True
    assert of(scoring="as-published").benchmark == of().benchmark


def test_the_layout_as_published_implies_no_framing():
    assert [of(kind).framings for kind in ("crest", "mrceval", "mrke")] == [["none"]] * 3
    assert of(set=["layout=documents_first"]).framings == ["delimited"]
    assert of(set=["framings=delimited"]).framings == ["delimited"]
    assert of("mdbench").framings == ["delimited"]


def test_list_benchmarks_says_for_each_what_it_is_and_what_is_here(ragbed):
    status, out, _ = ragbed("list", "benchmarks")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 150
    titles = [line.partition(":")[0] for line in out.splitlines() if not line.startswith(" ")]
    assert titles == list(BENCHMARKS)
    rows = {row["name"]: row for row in json.loads(ragbed("list", "benchmarks", "--json")[1])["benchmarks"]}
    for kind, row in rows.items():
        assert all(row[field] for field in ("is", "paper", "licence", "size", "metrics", "get", "here")), kind
        assert set(row["run_as"]) <= {"reasoning", "retrieval", "layout", "rules", "conditions", "show", "brief",
                                      "framings", "perturbations", "sub_answers", "filled", "retriever", "formats"}
    assert (rows["demo"]["here"], rows["jsonl"]["here"]) == ("bundled", "give a path")
    assert rows["crest"]["here"].startswith("hub:upstage/CReSt is")
    assert "unified" in rows["crest"]["metrics"]


def test_a_corpus_implies_the_condition_retrieved():
    assert of("demo", None).conditions == ["retrieved"]
    assert of("jsonl").conditions == ["retrieved"]
    assert of("jsonl", conditions=["closed-book"]).conditions == ["closed-book"]
