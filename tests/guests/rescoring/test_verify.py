"""`ragbed verify`: a run's figures computed again from its records, and whatever was altered since is found."""
import contextlib
import json
import random
import sqlite3

import pytest


@pytest.fixture
def finished(town, ragbed):
    """Checks the finished run: exit status, and the checks by name."""
    def verified():
        status, out, err = ragbed("verify", town.run, "--json")
        assert err == ""
        return status, {check["name"]: check for check in json.loads(out)["checks"]}

    return verified


def wrong(checks):
    return [name for name, check in checks.items() if check["agrees"] is False]


def alter(town, statement, *values):
    with contextlib.closing(sqlite3.connect(town.run / "records.sqlite")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def test_a_run_that_nobody_touched_agrees_in_everything(finished, town, ragbed):
    status, checks = finished()
    assert (status, wrong(checks)) == (0, [])
    assert [check["agrees"] for check in checks.values()] == [True] * 16
    assert checks["completeness"]["detail"] == "2 cells of 6 questions"
    assert "Everything that could be compared agrees." in ragbed("verify", town.run)[1]


def test_a_figure_that_was_altered_is_named_with_both_values(finished, town, ragbed):
    path = town.run / "summary.json"
    summary = json.loads(path.read_text())
    true = summary["cells"][0]["metrics"]["unified"]["mean"]
    summary["cells"][0]["metrics"]["unified"]["mean"] = 0.99
    path.write_text(json.dumps(summary))
    status, checks = finished()
    assert (status, wrong(checks)) == (1, ["seal", "figures"])
    assert checks["figures"]["differences"] == [
        f"cells[0].metrics.unified.mean: 0.99 in summary.json, {true} from the records"]
    status, out, _ = ragbed("verify", town.run)
    assert status == 1
    assert "figures: cells[0].metrics.unified.mean: 0.99 in summary.json" in out
    assert "Different: seal, figures." in out


def test_a_score_that_was_altered_is_found_in_its_record_its_score_and_the_figures(finished, town):
    alter(town, "UPDATE records SET result = json_set(result, '$.scores.unified', 0.5) "
                "WHERE question = 'refusal-0' AND place = 0")
    status, checks = finished()
    assert status == 1
    assert wrong(checks) == ["records", "scores", "figures"]
    assert checks["scores"]["differences"] == [
        checks["records"]["differences"][0].split(":")[0] + ": unified: 0.5 in the record, 0.0 scored again"]


def test_an_answer_whose_hash_was_altered_with_it_is_found_by_the_hash_over_all(finished, town):
    from ragbed.experiments.runs.store import _hash

    with contextlib.closing(sqlite3.connect(town.run / "records.sqlite")) as connection:
        (old,), = connection.execute("SELECT result FROM records WHERE question = 'non_refusal-1' AND place = 0")
    new = old.replace('"completion_tokens":12', '"completion_tokens":10')
    alter(town, "UPDATE records SET result = ?, hash = ? WHERE question = 'non_refusal-1' AND place = 0", new,
          _hash(new))
    status, checks = finished()
    assert status == 1
    assert wrong(checks) == ["seal", "results", "figures"]


def test_records_that_are_missing_or_unreadable_are_said_to_be(finished, town):
    alter(town, "DELETE FROM records WHERE question = 'refusal-0' AND place = 0")
    status, checks = finished()
    assert status == 1
    assert checks["completeness"]["differences"][0].startswith("refusal-0 in cell ")
    assert checks["figures"]["differences"] == ["cannot be computed from these records"]


def test_prompts_questions_settings_and_files_that_changed_are_each_found(finished, town):
    alter(town, "UPDATE texts SET content = content || '.' WHERE content LIKE '%<documents>%<td>Town 3</td>%'")
    alter(town, "UPDATE questions SET content = json_set(content, '$.about', 'x') WHERE id = 'refusal-0'")
    config = town.run / "config.yaml"
    config.write_text(config.read_text() + "# touched\n")
    manifest = json.loads((town.run / "manifest.json").read_text())
    (town.run / "manifest.json").write_text(json.dumps({**manifest, "prompts": "0", "judge_prompt": "1",
                                                        "exemplars": "2"}))
    town.write([town.row(number, answer="7 people") for number in range(6)])
    status, checks = finished()
    assert status == 1
    assert wrong(checks) == ["seal", "texts", "settings", "questions", "benchmark", "prompts", "judge prompts",
                             "exemplars"]
    assert 'hash was "0"' in checks["prompts"]["differences"][0]


def test_what_is_not_here_is_not_compared_and_no_difference(finished, town):
    for file in town.crest.iterdir():
        file.unlink()
    status, checks = finished()
    assert (status, checks["benchmark"]["agrees"]) == (0, None)
    assert "cannot be read on this machine" in checks["benchmark"]["detail"]


def test_without_a_whole_run_there_is_nothing_to_verify(finished, town, ragbed):
    (town.run / "manifest.json").write_text("{}")
    ragbed.refuses("verify", town.run, says=["manifest.json is missing, damaged"])
    (town.run / "summary.json").write_text("{")
    ragbed.refuses("verify", town.run, says=["summary.json: damaged"])
    (town.run / "summary.json").unlink()
    ragbed.refuses("verify", town.run, says=["has not finished"])


def test_an_edited_journal_is_found_and_not_replayed(finished, town, ragbed):
    alter(town, "UPDATE calls SET reply = replace(reply, '<Answer>', '<Answer>Not ') "
                "WHERE key = (SELECT min(key) FROM calls WHERE reply LIKE '%<Answer>%')")
    status, checks = finished()
    assert (status, wrong(checks)) == (1, ["calls"])
    ragbed.refuses("run", town.folder / "town.yaml", "--journal", "replay",
                   says=["records.sqlite: call ", "was altered after it was written"])
    alter(town, "UPDATE texts SET content = content || '.' WHERE hash = (SELECT min(hash) FROM texts)")
    assert wrong(finished()[1]) == ["texts", "calls"]


@pytest.mark.parametrize(("field", "value"), [
    ("cited", "json('[1000000000000000000000000000000]')"), ("question", "'nobody'"), ("cell", "'none'"),
    ("outcome", "'none'"), ("evidence", "json('[]')")])
def test_a_record_that_is_none_or_of_another_question_is_named(finished, town, ragbed, field, value):
    alter(town, f"UPDATE records SET result = json_set(result, '$.{field}', {value}) "
                "WHERE question = 'refusal-0' AND place = 0")
    for command in (("show", "refusal-0"), ("report",), ("export", "out.csv")):
        ragbed.refuses(command[0], town.run, *command[1:], says=["the record of refusal-0 in cell ", " is damaged"])


@pytest.mark.parametrize(("table", "column"), [
    ("records", "result"), ("questions", "content"), ("texts", "content"), ("calls", "reply")])
def test_bytes_where_a_text_was_kept_are_one_line(finished, town, ragbed, table, column):
    alter(town, f"UPDATE {table} SET {column} = x'00ff00' WHERE rowid = 1")
    ragbed.refuses("verify", town.run, says=["records.sqlite: damaged (bytes instead of text)"])


def test_damaged_records_are_one_line_whatever_is_damaged(finished, town, ragbed):
    records = town.run / "records.sqlite"
    whole = records.read_bytes()
    rng = random.Random(19)
    for _ in range(25):
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 40))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        records.write_bytes(damaged[:rng.choice((len(damaged), len(damaged) // 2))])
        for command in (("verify",), ("show", "#1"), ("rescore",)):
            status, _, err = ragbed(command[0], town.run, *command[1:])
            assert status in (0, 1, 2), err
            assert status < 2 or len(err.splitlines()) == 1, err
