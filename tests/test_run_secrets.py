"""What must not get out of its place: keys into files, gold into prompts, control codes into terminals and reports."""
import gzip
import json
from pathlib import Path

import pytest

from ragbed.strategies import CRESTS

FIVE = list(CRESTS)
KEY = 'sk-canary/+"0123456789'
OTHER = "sk-canary-of-another-server"


def every_byte(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("sent_as", [json.dumps(KEY)[1:-1], "".join(f"\\u{ord(char):04x}" for char in KEY)])
def test_the_key_is_in_no_file_and_no_output_even_when_the_server_sends_it_back(
        serve, town, ragbed, monkeypatch, sent_as):
    monkeypatch.setenv("RAGBED_API_KEY", KEY)

    def echo(body):
        if "town 2" in str(body):
            return {"status": 400, "body": f'{{"error": {{"message": "key {sent_as}", "code": "{sent_as}"}}}}'.encode()}
        message = f'{{"content": "<Answer>Your key is {sent_as}</Answer>", "reasoning_content": "{sent_as}"}}'
        return {"body": f'{{"choices": [{{"message": {message}, "finish_reason": "{sent_as}"}}]}}'.encode()}

    server = serve(echo)
    status, out, err = ragbed("run", town.config(server.url, reasoning=FIVE))
    assert status == 0
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    written = every_byte(town.folder / "runs") + out.encode() + err.encode()
    assert b"Your key is [key]" in written
    for form in (KEY, json.dumps(KEY)[1:-1], sent_as, "sk-canary"):
        assert form.encode() not in written


def test_a_key_that_comes_in_parts_or_in_the_error_of_a_strategy_is_in_no_file_and_no_output(
        serve, town, ragbed, monkeypatch):
    monkeypatch.setenv("RAGBED_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    pieces = ("<Answer>", KEY[:10], KEY[10:], " ", OTHER[:10], OTHER[10:], "</Answer>")
    parts = [{"type": "text", "text": part} for part in pieces]
    code = "raise ValueError(os.environ['RAGBED_API_KEY'])"
    (town.folder / "mine.py").write_text(f"import os\ndef failing(task):\n    {code}\n    yield\n")
    (town.folder / "never.py").write_text(f"import os\n{code}\n")

    def echo(body):
        odd = "town 2" in str(body)
        return {"message": {"content": None if odd else parts, "refusal": parts if odd else None,
                            "reasoning_content": parts}}

    strategies = ["direct", f"{town.folder / 'mine.py'}:failing"]
    server = serve(echo)
    (town.folder / "page.txt").write_text("Town 1 has 111 people.")
    said = [ragbed("run", town.config(server.url, reasoning=strategies)), ragbed("report", town.run),
            ragbed("cassette", "export", town.run, "--out", town.folder / "c.gz"),
            ragbed("export", town.run, town.folder / "out.csv"), ragbed("show", town.run, "1"),
            ragbed("index", town.folder / "page.txt", "--out", town.folder / "i"),
            ragbed("ask", "How many?", "--index", town.folder / "i", "--retriever", "bm25", "--trace",
                   "--model", f"{server.url}#m")]
    assert [status for status, _, _ in said] == [0] * 7, said
    written = every_byte(town.folder) + gzip.decompress((town.folder / "c.gz").read_bytes()) + "".join(
        out + err for _, out, err in said).encode()
    assert b"<Answer>[key] [key]</Answer>" in written
    assert b"ValueError: [key]" in written
    assert b"sk-canary" not in written
    ragbed.refuses("run", town.config("http://x/v1", reasoning=f"{town.folder / 'never.py'}:f"), says=["Error: [key]"])


MONSTERS = ["a" + " " * 200_000 + "b [1]", "[1]" * 5_000, "[1, " * 30_000, "\n" * 200_000 + "x", "1," * 50_000,
            "<think>" * 50_000, "<Answer>" * 50_000, "9" * 200_000, "9" * 1_100_000,
            "1억" + "9" * 1_100_000, "0." + "9" * 1_100_000, "\x1b]0;title\x07\x00"]


@pytest.mark.parametrize("reply", [
    *MONSTERS[:3], *(pytest.param(one, marks=pytest.mark.slow) for one in MONSTERS[3:])])
def test_a_monstrous_reply_is_a_record_like_any_other(serve, town, ragbed, reply):
    town.write([town.row(number) for number in range(2)])
    status, out, err = ragbed("run", town.config(serve(lambda _: reply).url, reasoning=["direct", "least_to_most"]))
    assert status == 0
    assert "\x1b" not in out + err
    assert len(town.records()) == 4


ODD = ["../../up", "a/b\\c", "<script>alert(1)</script>", "nul\x00byte", "line\nbreak", "\x1b[31mred", "한국어",
       "x" * 3000, "'; DROP TABLE records; --", "{braces}", "[bold]"]


def test_odd_ids_and_texts_are_kept_as_they_are_and_shown_harmlessly(serve, town, ragbed):
    own = town.own(*({"id": name, "question": f"{name} {{question}}?", "answer": name, "tags": {"odd": name}}
                     for name in ODD))
    server = serve(lambda body: body["messages"][1]["content"])
    status, out, err = ragbed("run", town.config(server.url, benchmark=own, conditions="closed-book"))
    assert status == 0
    assert [record["result"]["question"] for record in town.records()] == ODD
    sent = [body["messages"][1]["content"] for body, _ in server.requests]
    assert all(any(f"Question: {name} {{question}}?" in prompt for prompt in sent) for name in ODD)
    assert "\x1b" not in out + err
    report = (town.run / "report.html").read_text()
    assert "<script>alert" not in report
    assert "\x1b" not in report
