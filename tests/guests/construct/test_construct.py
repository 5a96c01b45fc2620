"""A construction as a whole: the same bytes however it is played, stopped or replayed, and what its card says."""
import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ragbed.experiments.guests.review.items import open_set
from ragbed.experiments.guests.review.reviews import Review, ReviewFile

TOWNS = ("Arlen", "Bixby", "Corda", "Delmar", "Elgin", "Fargo")


def page(town):
    number = 1871 + TOWNS.index(town)
    return (f"{town} mill. The mill of {town} opened in {number}. It stands by the river and was built of oak. "
            f"The mill of {town} burned for two days. Nobody in the valley ever learned who had laid the fire, and "
            "its owner built no other. ")


def writer(body):
    """Replies as a sound writer and a sound solver would: the year that the passage says."""
    messages = [message["content"] for message in body["messages"]]
    if "response_format" not in body:
        year = re.search(r"mill of \w+ opened in (\d{4})", messages[-1])
        return f"{year[1]} [1]" if year else "I cannot answer from the documents."
    line, town, year = re.search(r"\[(\d+)\] The mill of (\w+) opened in (\d{4})", messages[0]).groups()
    if "information" in body["response_format"]["json_schema"]["schema"]["properties"]:
        return json.dumps({"information": [{"key": "mill", "values": [year], "description": f"{town} has a mill."}]})
    tier = sum(message["role"] == "user" for message in body["messages"])
    return json.dumps({"questions": [{
        **({"type": "semantic"} if tier == 2 else {"types": ["temporal"]}),
        "question": f"{'?' * tier} In which year did the mill of {town} open, tier {tier}?",
        "answer": year, "evidence": [int(line)]}]})


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    for town in TOWNS:
        (folder / f"{town}.txt").write_text(page(town))
    return folder


def files(folder):
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*"))
            if file.is_file() and not file.relative_to(folder).parts[0].startswith("build")}


@pytest.fixture
def build(ragbed, sources, tmp_path):
    def run(url, name, *more, n=4):
        out = tmp_path / name
        status, said, err = ragbed("construct", "crest", sources, "--out", out, "--writer", f"{url}#m", "--n", n, *more)
        assert status == 0, err
        return out, said

    return run


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_what_is_played_at_once(serve, build):
    server = serve(writer)
    one, said = build(server.url, "one", "--set", "calls.calls.concurrency=1")
    many, _ = build(server.url, "many", "--set", "calls.calls.concurrency=12")
    assert files(one) == files(many)
    card = json.loads((one / "card.json").read_text())
    assert (card["yield"]["kept"], card["yield"]["asked_for"]) == (4, 4)
    assert "kept" in said
    assert {"card.md", "report.html", "items.jsonl", "crest/non_refusal.jsonl"} <= files(one).keys()


def kept(folder):
    lines = map(json.loads, (folder / "items.jsonl").read_text().splitlines())
    return [one["item"]["id"] for one in lines if not one["lost"]]


@pytest.mark.slow
def test_a_set_that_grows_keeps_what_it_had_and_on_its_card_what_reviewers_said(serve, build):
    server = serve(writer)
    out, _ = build(server.url, "set", n=2)
    few, reviewed = kept(out), open_set(str(out))
    file = ReviewFile(reviewed.file, reviewed.items)
    file.put("Ana", few[0], 0, Review(decision="accept"))
    file.close()
    build(server.url, "set", n=5)
    more = kept(out)
    assert (len(few), len(more), more[:2]) == (2, 5, few)
    assert "- 1 of 5 items reviewed by 1 person: 1 accepted, 0 rejected." in (out / "card.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("calls", [2, 9, 17])
def test_a_killed_construction_goes_on_to_the_same_bytes(calls, serve, build, sources, tmp_path):
    stuck, asked = threading.Event(), []

    def stalls(body):
        asked.append(body)
        return {"text": writer(body), "hold": stuck} if len(asked) == calls + 1 else writer(body)

    server, out = serve(stalls), tmp_path / "killed"
    process = subprocess.Popen([
        sys.executable, "-m", "ragbed", "construct", "crest", str(sources), "--out", str(out), "--n", "4",
        "--writer", f"{server.url}#m", "--set", "calls.calls.concurrency=1"])
    while len(asked) <= calls and process.poll() is None:
        threading.Event().wait(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stuck.set()
    assert not (out / "card.json").exists()
    build(server.url, "killed", "--set", "calls.calls.concurrency=1")
    assert [asked.count(body) for body in asked[:calls]] == [1] * calls
    whole, _ = build(server.url, "whole")
    assert files(out) == files(whole)


def test_a_cassette_builds_the_set_again_without_a_model(serve, build, ragbed, tmp_path, sources):
    server = serve(writer)
    out, _ = build(server.url, "first")
    cassette = tmp_path / "set.cassette.jsonl.gz"
    assert ragbed("cassette", "export", out, "--out", cassette)[0] == 0
    made = len(server.requests)
    again, _ = build(server.url, "second", "--replay", cassette)
    assert len(server.requests) == made
    assert files(again) == files(out)
    (sources / "Arlen.txt").write_text(page("Arlen") + "It was sold.")
    ragbed.refuses("construct", "crest", sources, "--out", tmp_path / "third", "--writer", f"{server.url}#m",
                   "--n", 4, "--replay", cassette, says=["recorded with different sources"])


@pytest.mark.slow
def test_a_budget_stops_it_and_a_larger_one_goes_on(serve, build, ragbed, sources, tmp_path):
    server = serve(lambda body: {"text": writer(body), "usage": {"prompt_tokens": 90, "completion_tokens": 10}})
    arguments = ("construct", "crest", sources, "--out", tmp_path / "set", "--writer", f"{server.url}#m", "--n", 4,
                 "--set", "calls.calls.concurrency=1")
    ragbed.refuses(*arguments, "--budget", "tokens=800", says=["the budget of", "is spent", "of 4 items"])
    made = len(server.requests)
    assert made < 20
    assert ragbed(*arguments, "--budget", "tokens=900000")[0] == 0
    assert len({json.dumps(body) for body, _ in server.requests}) == len(server.requests)
    ragbed.refuses(*arguments, "--shard", "2/4", "--budget", "tokens=400", says=["100 tokens, the share of shard 2/4"])


@pytest.mark.slow
def test_a_dry_run_bounds_what_is_asked(serve, build, ragbed, sources, tmp_path):
    server = serve(writer)
    status, said, err = ragbed("construct", "crest", sources, "--out", tmp_path / "dry", "--writer",
                               f"{server.url}#m", "--n", 4, "--dry-run", "--json")
    assert status == 0, err
    assert server.requests == []
    assert not (tmp_path / "dry").exists()
    (bound,) = json.loads(said)["models"]
    build(server.url, "real")
    assert len(server.requests) <= bound["calls"]
    longest = max(sum(len(message["content"]) for message in body["messages"]) for body, _ in server.requests)
    assert longest / 8 * len(server.requests) <= bound["prompt_tokens"]


def test_items_that_are_missing_have_their_reasons(serve, build):
    def liar(body):
        said = writer(body)
        if "response_format" in body or "Arlen" not in body["messages"][-1]["content"]:
            return said
        return "1066 [1]"

    out, said = build(serve(liar).url, "set", "--tries", 12)
    card = json.loads((out / "card.json").read_text())
    found = card["yield"]
    lost = sum(sum(reasons.values()) for reasons in found["lost"].values())
    lines = [json.loads(line) for line in (out / "items.jsonl").read_text().splitlines()]
    assert lost + found["kept"] == len(lines)
    by_source = {one["source"]: one for one in card["sources"]}
    assert len(by_source) == len(TOWNS)
    assert by_source["Arlen.txt"]["kept"] == 0
    assert "Arlen.txt" in said


def test_sources_that_give_nothing_are_named_and_hostile_names_and_texts_stay_texts(serve, build, sources):
    for name, content in (("empty.txt", ""), ("blank.html", "<p> </p>"), ("odd.pdf", "no pdf"), ("odd.xyz", "x")):
        (sources / name).write_text(content)
    (sources / "<script>alert(1)<!--.txt").write_text(page("Arlen") + "<script>alert(2)</script> \u202e")
    out, _ = build(serve(writer).url, "set")
    card, report = (out / "card.md").read_text(), (out / "report.html").read_text()
    for said in ("empty.txt", "blank.html", "odd.pdf", "odd.xyz: unknown type"):
        assert said in card
    assert "<script" not in report
    assert "\u202e" not in report + card


def test_what_does_not_fit_is_one_line(ragbed, sources, tmp_path):
    out = tmp_path / "set"
    ragbed.refuses("construct", "crust", sources, "--out", out, "--writer", "m", says=["crust", "choose from: crest"])
    ragbed.refuses("construct", "crest", sources, "--out", out, says=["--writer"])
    ragbed.refuses("construct", "crest", "--out", out, "--writer", "m", says=["documents"])
    ragbed.refuses("construct", "crest", sources, "--out", out, "--writer", "smollm2-135m", "--set",
                   "options.mots=3", says=["mots"])


def test_where_no_call_succeeds_nothing_is_kept_and_the_next_time_they_are_made(serve, ragbed, sources, tmp_path):
    down = [True]
    server = serve(lambda body: {"status": 400, "error": {"message": "down"}} if down else writer(body))
    command = ("construct", "crest", sources, "--out", tmp_path / "set", "--writer", f"{server.url}#m", "--n", 2)
    status, _, err = ragbed(*command)
    assert status == 1
    assert "no item was kept" in err
    assert "rerun the command to retry" in err
    assert json.loads((tmp_path / "set" / "card.json").read_text())["yield"]["kept"] == 0
    down.clear()
    assert ragbed(*command)[0] == 0
    assert len(kept(tmp_path / "set")) == 2


@pytest.mark.slow
def test_one_that_is_under_way_is_held(serve, build, sources, tmp_path):
    held = threading.Event()
    server = serve(lambda body: {"text": writer(body), "hold": held})
    command = [sys.executable, "-m", "ragbed", "construct", "crest", str(sources), "--out",
               str(tmp_path / "set"), "--n", "4", "--writer", f"{server.url}#m"]
    first = subprocess.Popen(command)
    while not server.requests and first.poll() is None:
        threading.Event().wait(0.02)
    second = subprocess.run(command, capture_output=True, text=True)
    held.set()
    first.wait()
    assert second.returncode == 2
    assert "another process is working on" in second.stderr
    assert Path(tmp_path / "set" / "card.json").is_file()


@pytest.mark.slow
def test_shards_in_processes_make_the_set_that_was_never_divided(serve, build):
    server = serve(writer)
    whole, _ = build(server.url, "whole")
    launched, _ = build(server.url, "launched", "--launcher", "local:2")
    assert files(launched) == files(whole)


@pytest.mark.slow
def test_shards_make_the_set_that_was_never_divided(serve, build, ragbed, sources, tmp_path):
    server = serve(writer)
    whole, _ = build(server.url, "whole")
    made = len(server.requests)
    for shard in ("2/2", "1/2"):
        _, said = build(server.url, "by hand", "--shard", shard)
        assert f"shard {shard} is done" in said
    assert not (tmp_path / "by hand" / "card.json").exists()
    ragbed.refuses("merge", tmp_path / "by hand" / "build.shards", says=["`ragbed construct` command without --shard"])
    asked = [json.dumps(body) for body, _ in server.requests[made:]]
    by_hand, _ = build(server.url, "by hand")
    later = [json.dumps(body) for body, _ in server.requests[made + len(asked):]]
    assert len(asked) > made / 2 > len(later)
    assert not {*asked} & {*later}  # what a shard asked is not asked again
    assert files(by_hand) == files(whole)
    other, _ = build(server.url, "other", "--shard", "1/2", "--seed", 7)
    ragbed.refuses("construct", "crest", sources, "--out", other, "--writer", f"{server.url}#m", "--n", 4,
                   says=["build.shards/1-of-2", "built with different settings"])
    build(server.url, "other", "--fresh")
    assert files(other) == files(whole)


@pytest.mark.slow
def test_the_first_block_of_the_docs_is_what_the_command_prints(ragbed, tmp_path, monkeypatch):
    root = Path(__file__).parents[3]
    monkeypatch.chdir(tmp_path)
    out = ragbed("construct", "computed", root / "experiments/data/demo/pages", "--out", "set", "--n", 12)[1]
    block = (root / "docs/construction.md").read_text("utf-8").partition("Yield\n")[2].partition("\n...")[0]
    printed = " ".join(out.split())
    assert all(" ".join(line.split()) in printed for line in block.splitlines()), out
