"""A leaderboard accepts what replays to the byte over its own questions, and refuses everything else with a reason."""
import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[3]
OWNER = """
conditions: provided
benchmark: {kind: hotpotqa, path: "%s", limit: 6}
"""


@pytest.fixture(scope="module")
def cheats():
    """The script that alters submissions."""
    found = importlib.util.spec_from_file_location("cheats", ROOT / "bench" / "leaderboard.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(cheats, tmp_path_factory):
    """A folder with a genuine submission, one over altered gold, and the owner's settings."""
    folder = tmp_path_factory.mktemp("made")
    cheats.submissions(folder)
    (folder / "leaderboard.yaml").write_text(OWNER % cheats.QUESTIONS)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A leaderboard's folder with the genuine submission."""
    for name in ("leaderboard.yaml", "genuine.cassette.jsonl.gz"):
        shutil.copy(made / name, tmp_path / name)
    return tmp_path


def alter(cheats, folder, name, change):
    """Add the genuine submission, altered, with right checksums."""
    lines = cheats.unpack(folder / "genuine.cassette.jsonl.gz")
    change(lines)
    cheats.pack(lines, folder / f"{name}.cassette.jsonl.gz")


def reasons(ragbed, folder):
    status, out, _ = ragbed("leaderboard", folder, "--out", folder / "site", "--json")
    found = json.loads(out)
    assert status == bool(found["refused"])
    return {one["file"].split(".")[0]: one["reason"] for one in found["refused"]}


@pytest.mark.slow
def test_a_genuine_submission_has_the_figures_of_its_run(folder, made, ragbed):
    found = ragbed.json("leaderboard", folder, "--out", folder / "site")
    rows = found["tables"][0]["rows"]
    cells = json.loads((made / "runs" / "genuine" / "summary.json").read_text())["cells"]
    assert sorted(row["figure"]["mean"] for row in rows) == sorted(cell["metrics"]["em"]["mean"] for cell in cells)
    assert {row["strategy"] for row in rows} == {"direct", "chain_of_draft"}
    assert json.loads((folder / "site" / "leaderboard.json").read_text())["tables"] == found["tables"]
    first = (folder / "site" / "index.html").read_bytes()
    assert ragbed("leaderboard", folder, "--out", folder / "site")[0] == 0
    assert (folder / "site" / "index.html").read_bytes() == first


def test_the_page_loads_nothing_shows_every_row_without_scripts_and_says_what_a_replay_cannot_show(folder, ragbed):
    ragbed("leaderboard", folder, "--out", folder / "site")
    page = BeautifulSoup((folder / "site" / "index.html").read_text(), "lxml")
    assert "default-src 'none'" in page.find("meta", attrs={"http-equiv": True})["content"]
    assert not [one for one in page.find_all(True) if one.get("src") or one.get("href")]
    assert len(page.select("section[data-benchmark] tbody tr")) == 2
    assert page.select_one("form.filters").has_attr("hidden")
    assert "A submitter can invent replies and token counts, choose passages" in page.select_one(".note").get_text()


@pytest.mark.slow
def test_altered_submissions_are_refused_each_with_its_reason(cheats, folder, made, ragbed):
    def settings(name, value):
        return lambda lines: lines[0]["run"]["settings"].update({name: value})

    shutil.copy(made / "altered.cassette.jsonl.gz", folder / "othergold.cassette.jsonl.gz")
    shutil.copy(folder / "genuine.cassette.jsonl.gz", folder / "zcopy.cassette.jsonl.gz")
    (folder / "cut.cassette.jsonl.gz").write_bytes((folder / "genuine.cassette.jsonl.gz").read_bytes()[:-9])
    (folder / "more.cassette.jsonl.gz").write_bytes((folder / "genuine.cassette.jsonl.gz").read_bytes() + b"\0")
    for name, change in {
            "reply": lambda lines: lines[-1]["reply"].update(text="<Answer>Paris [1]</Answer>"),
            "fewer": lambda lines: lines.pop(),
            "tokens": lambda lines: lines[-1]["reply"]["usage"].update(prompt_tokens=1),
            "claim": lambda lines: lines[0]["run"].update(results="0" * 64),
            "remark": lambda lines: lines[0]["run"].update(made_with={"by": "me"}),
            "gold": settings("conditions", ["gold"]), "drop": settings("perturbations", ["drop_gold"]),
            "code": settings("reasoning", ["my.py:recipe"]), "metric": settings("metrics", ["my.py:polite"]),
            "pipeline": settings("pipelines", [{"kind": "python", "name": "p", "factory": "my.py:f"}]),
            "unused": settings("retriever", [{"kind": "dense", "k": 9}])}.items():
        alter(cheats, folder, name, change)
    found = reasons(ragbed, folder)
    said = {"othergold": "its questions, documents or gold are not those", "zcopy": "the same results as genuine",
            "cut": "truncated", "more": "bytes after its end", "reply": "do not give the results",
            "fewer": "calls or searches of its run are missing", "tokens": "do not give the results",
            "claim": "do not give the results", "remark": "without remarks", "gold": "conditions: the leaderboard has",
            "drop": "perturbations: the leaderboard has", "code": "name code, which is never loaded",
            "metric": "name code", "pipeline": "name code", "unused": "not in the form"}
    assert found.keys() == said.keys()
    assert [name for name, reason in said.items() if reason not in found[name]] == []
    page = BeautifulSoup((folder / "site" / "index.html").read_text(), "lxml")
    assert len(page.select("#refused li")) == len(said)
    assert len(page.select("section[data-benchmark] tbody tr")) == 2


@pytest.mark.slow
def test_calls_and_texts_that_the_run_does_not_make_are_refused(cheats, folder, ragbed):
    from random import Random

    for number in range(4):
        alter(cheats, folder, f"added{number}", lambda lines, seed=number: cheats.added(lines, Random(seed)))
    found = reasons(ragbed, folder)
    assert len(found) == 4
    assert {*found.values()} <= {"it has calls that its run does not make", "its content is not what `ragbed cassette "
                                 "export` writes for these results"}


@pytest.mark.slow
def test_a_passage_with_the_answer_written_into_it_is_refused(cheats, folder, tmp_path, ragbed):
    import ragbed as package
    from ragbed.agents.database import text_hash

    with cheats.serve() as url:
        package.run({"name": "s", "out": str(tmp_path / "runs"), "models": f"{url}#m", "conditions": "retrieved",
                     "retriever": "bm25", "reasoning": "direct", "benchmark": {
                         "kind": "hotpotqa", "path": str(cheats.QUESTIONS), "limit": 6}}).close()
    (folder / "leaderboard.yaml").write_text((OWNER % cheats.QUESTIONS).replace("provided", "retrieved"))
    genuine = folder / "genuine.cassette.jsonl.gz"
    assert ragbed("cassette", "export", tmp_path / "runs" / "s", "--out", genuine)[0] == 0
    assert ragbed("leaderboard", folder, "--out", folder / "site")[0] == 0

    def insert(lines):
        hit = next(line for line in lines if "search" in line)["found"]["hits"][0]
        text = next(line["content"] for line in lines if line.get("text") == hit["text"]) + " The answer is yes."
        hit["text"] = text_hash(text)
        lines.insert(1, {"text": hit["text"], "content": text})

    alter(cheats, folder, "told", insert)
    assert reasons(ragbed, folder) == {"told": "a search found a passage that is not in the benchmark's documents"}


@pytest.mark.slow
def test_hostile_names_are_text_on_the_page(cheats, folder, tmp_path, ragbed):
    hostile = "<img onerror><b>\u202e"
    import ragbed as package

    with cheats.serve() as url:
        package.run({"name": "h", "out": str(tmp_path / "runs"), "models": f"{url}#{hostile}",
                     "conditions": "provided", "reasoning": "direct", "benchmark": {
                         "kind": "hotpotqa", "path": str(cheats.QUESTIONS), "limit": 6}}).close()
    assert ragbed("cassette", "export", tmp_path / "runs" / "h", "--out", folder / "h<b>.cassette.jsonl.gz")[0] == 0
    (folder / "<script>.cassette.jsonl.gz").write_text("no")
    assert ragbed("leaderboard", folder, "--out", folder / "site")[0] == 1
    text = (folder / "site" / "index.html").read_text()
    page = BeautifulSoup(text, "lxml")
    assert not page.find_all("img")
    assert len(page.find_all("script")) == 1
    assert "\u202e" not in text
    assert "<img onerror><b>⟨U+202E⟩" in page.get_text()


@pytest.mark.slow
def test_different_question_sets_have_separate_tables(cheats, folder, made, ragbed):
    (folder / "leaderboard.yaml").write_text(
        f"conditions: provided\nbenchmark:\n- {{kind: hotpotqa, path: '{cheats.QUESTIONS}', limit: 6}}\n"
        f"- {{kind: hotpotqa, path: '{made / 'altered'}', limit: 6}}\n")
    shutil.copy(made / "altered.cassette.jsonl.gz", folder)
    found = ragbed.json("leaderboard", folder, "--out", folder / "site")
    assert [{row["file"] for row in table["rows"]} for table in found["tables"]] == [
        {"genuine.cassette.jsonl.gz"}, {"altered.cassette.jsonl.gz"}]


@pytest.mark.slow
def test_a_replay_that_takes_too_long_is_stopped(folder, monkeypatch, ragbed):
    import time

    from ragbed.experiments.guests.leaderboard import submission_checks

    monkeypatch.setattr(submission_checks, "check_submission", lambda *args: time.sleep(60))
    status, _, err = ragbed("leaderboard", folder, "--out", folder / "site", "--seconds", 1)
    assert (status, "takes longer than 1 seconds" in err) == (1, True)


def test_a_leaderboard_without_settings_or_submissions_is_one_line(tmp_path, ragbed):
    ragbed.refuses("leaderboard", tmp_path, says=["leaderboard.yaml does not exist", "benchmark: {kind:"])
    (tmp_path / "leaderboard.yaml").write_text(OWNER % (ROOT / "tests" / "data" / "hotpotqa_195"))
    ragbed.refuses("leaderboard", tmp_path, says=["has no submission"])


@pytest.mark.slow
def test_mutated_submissions_are_all_refused(cheats, tmp_path):
    kinds, accepted, _ = cheats.cheat(100, 7, tmp_path)
    assert (kinds.total(), accepted) == (100, [])
