"""The file of a cassette: equal bytes for equal runs, no secrets, and one line for whatever is not whole."""
import gzip
import hashlib
import json
from pathlib import Path

import pytest

from ragbed.agents.cassette import Cassette
from ragbed.documents import RunError


@pytest.fixture
def file(serve, town, ragbed):
    """The cassette of a run."""
    assert ragbed("run", town.config(serve(town.reply).url))[0] == 0
    assert ragbed("cassette", "export", town.run, "--out", town.folder / "c.gz")[0] == 0
    return town.folder / "c.gz"


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def put(file: Path, fields: list, hashed: bool = True) -> None:
    """Write lines as a cassette, with the hash that they ought to have."""
    written = [(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)) + "\n" for one in fields]
    if hashed:
        end = {**fields[-1], "sha256": hashlib.sha256("".join(written[:-1]).encode()).hexdigest()}
        written[-1] = json.dumps(end) + "\n"
    file.write_bytes(gzip.compress("".join(written).encode()))


def test_equal_runs_make_equal_bytes_and_the_file_can_be_looked_at(town, ragbed, file):
    one = file.read_bytes()
    assert ragbed("run", town.folder / "town.yaml", "--fresh")[0] == 0
    assert ragbed("cassette", "export", town.run, "--out", file)[0] == 0
    assert file.read_bytes() == one
    head, *rest, end = lines(file)
    assert (head["cassette"], head["version"], head["run"]["name"]) == ("ragbed", 3, "town")
    assert "out" not in head["run"]["settings"]
    assert [next(iter(line)) for line in rest] == ["text"] * (len(rest) - 6) + ["call"] * 6
    assert end["end"] == {"texts": len(rest) - 6, "calls": 6, "searches": 0}
    texts = [line["content"] for line in rest if "text" in line]
    assert len(set(texts)) == len(texts)
    status, out, _ = ragbed("cassette", "show", file, "--json")
    held = json.loads(out)
    assert (status, held["calls"], held["questions"], held["tokens"]["prompt"]) == (0, 6, 6, 4200)
    assert "6 calls, 0 searches" in ragbed("cassette", "show", file)[1]


def test_a_file_that_is_cut_or_altered_anywhere_is_one_line(ragbed, file):
    whole = file.read_bytes()
    for place in (0, 1, 10, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        file.write_bytes(whole[:place])
        ragbed.refuses("run", "--replay", file, says=["c.gz", "damaged" if place > 10 else "not a cassette"])
    for place in range(10, len(whole), len(whole) // 25):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1:])
        with pytest.raises(RunError):
            Cassette.open(file)
    file.write_bytes(whole + b"more")
    ragbed.refuses("cassette", "show", file, says=["damaged"])


def test_what_is_no_cassette_is_one_line(ragbed, tmp_path):
    for name, data in (("text", b"not packed"), ("empty", b""), ("other.gz", gzip.compress(b"{}\n")),
                       ("list.gz", gzip.compress(b"[1]\n")), ("deep.gz", gzip.compress(b"[" * 200_000)),
                       ("number.gz", gzip.compress(b"9" * 10_000)), ("bytes.gz", gzip.compress(b"\xff\xfe\n"))):
        (tmp_path / name).write_bytes(data)
        ragbed.refuses("run", "--replay", tmp_path / name, says=[name, "not a cassette"])
    ragbed.refuses("run", "--replay", tmp_path / "none", says=["none", "No such file"])
    ragbed.refuses("run", "--replay", tmp_path, says=["Is a directory"])


def changes(fields: list[dict]) -> dict[str, list]:
    """Cassettes whose hash fits, and whose lines do not."""
    head, *rest, end = fields
    text = next(place for place, line in enumerate(rest) if "text" in line)
    call = next(place for place, line in enumerate(rest) if "call" in line)

    def with_line(place, **changed):
        return [head, *rest[:place], {**rest[place], **changed}, *rest[place + 1:], end]

    return {"does not match its hash": with_line(text, content="Another."),
            "a reply or a failure, and not both": with_line(call, reply=None),
            "reply.usage.prompt_tokens": with_line(call, reply={"text": "", "usage": {"prompt_tokens": "x"}}),
            "call: String should match": with_line(call, call="../../etc"),
            "checksum mismatch": [head, *rest[:-1], end],
            "text after the end": [head, *rest, end, end],
            "Extra inputs": with_line(call, more=1),
            "nested too deeply": [head, "[" * 100_000, end],
            "truncated": [head, *rest],
            "another version of ragbed": [{**head, "version": 2}, *rest, end],
            "not a cassette": [*rest, end],
            "benchmark.name: Field required": [{**head, "run": {**head["run"], "benchmark": {}}}, *rest, end],
            "the description of the run is damaged": [{**head, "run": {"name": "town"}}, *rest, end]}


def test_lines_that_do_not_fit_are_one_line_and_nothing_is_begun(ragbed, file, tmp_path):
    for said, fields in changes(lines(file)).items():
        put(file, fields, hashed="end" in fields[-1])
        ragbed.refuses("run", "--replay", file, "--out", tmp_path / "again", says=["c.gz", said])
    assert not (tmp_path / "again").exists()


def test_a_reply_that_was_altered_under_a_fitting_hash_ends_the_replay_with_status_1(ragbed, file, tmp_path):
    whole = lines(file)
    call = next(line for line in whole if "call" in line)
    call["reply"]["text"] = "<Answer>another</Answer>"
    put(file, whole)
    status, _, err = ragbed("run", "--replay", file, "--out", tmp_path / "again")
    assert (status, "the results differ from those" in err, "or the file was changed" in err) == (1, True, True), err


def test_a_cassette_does_not_say_where_its_replay_is_written(ragbed, file, tmp_path, monkeypatch):
    head, *rest = lines(file)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    head["run"]["settings"]["out"] = str(tmp_path / "elsewhere")
    put(file, [head, *rest])
    assert ragbed("run", "--replay", file)[0] == 0
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / "here" / "runs" / "town" / "summary.json").is_file()
    head["run"]["settings"]["name"] = "../../elsewhere"
    put(file, [head, *rest])
    ragbed.refuses("run", "--replay", file, says=["cannot be the name of a folder"])
