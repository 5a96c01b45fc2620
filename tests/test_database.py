"""The SQLite file under journal and records: shared commits, texts kept once, errors on one line."""
import asyncio
import sqlite3
import tracemalloc

import pytest

from ragbed.agents import Database
from ragbed.documents import RunError

SCHEMA = ("CREATE TABLE IF NOT EXISTS numbers (value INTEGER)",)


def rows(path) -> int:
    """What another connection sees: what is committed."""
    connection = sqlite3.connect(path)
    count = connection.execute("SELECT count(*) FROM numbers").fetchone()[0]
    connection.close()
    return count


async def test_what_is_put_is_committed_when_durable_returns_and_many_share_a_commit(tmp_path):
    database = Database(tmp_path / "d", SCHEMA)

    async def keep(value: int) -> int:
        database.put("INSERT INTO numbers VALUES (?)", (value,))
        assert rows(tmp_path / "d") in (0, 200)
        await database.durable()
        return rows(tmp_path / "d")

    assert set(await asyncio.gather(*map(keep, range(200)))) == {200}
    database.close()


async def test_a_database_that_is_closed_before_its_next_commit_has_committed_and_is_quiet(tmp_path):
    said = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: said.append(context["message"]))
    database = Database(tmp_path / "d", SCHEMA)
    database.put("INSERT INTO numbers VALUES (1)", ())
    waiting = asyncio.create_task(database.durable())
    await asyncio.sleep(0)
    database.close()
    await asyncio.sleep(0.05)
    waiting.cancel()
    assert (rows(tmp_path / "d"), said) == (1, [])


async def test_a_waiter_that_is_cancelled_takes_no_other_with_it(tmp_path):
    database = Database(tmp_path / "d", SCHEMA)
    database.put("INSERT INTO numbers VALUES (1)", ())
    one, other = asyncio.create_task(database.durable()), asyncio.create_task(database.durable())
    await asyncio.sleep(0)
    one.cancel()
    await other
    assert rows(tmp_path / "d") == 1
    database.close()


@pytest.mark.parametrize("text", ["", "nul\x00byte", "한국어 😀", "\x1b[31m", "x" * 1_000_000])
def test_a_text_comes_back_as_it_was_from_another_opening_too(tmp_path, text):
    database = Database(tmp_path / "d", ())
    key = database.put_text(text)
    assert database.put_text(text) == key
    assert database.text(key) == text
    database.close()
    again = Database(tmp_path / "d", ())
    assert again.text(key) == text
    assert again.read("SELECT count(*) FROM texts") == [(1,)]
    again.close()


def test_a_text_that_is_missing_is_named(tmp_path):
    database = Database(tmp_path / "d", ())
    with pytest.raises(RunError, match="the text abc is missing; the file is damaged"):
        database.text("abc")
    database.close()


def test_what_cannot_be_opened_is_one_line(tmp_path):
    (tmp_path / "text").write_text("not a database, but long enough to be looked at " * 100)
    (tmp_path / "folder").mkdir()
    for name, reason in (("text", "not a database"), ("folder", "unable to open"), ("none/d", "unable to open")):
        with pytest.raises(RunError, match=reason) as raised:
            Database(tmp_path / name, SCHEMA)
        assert str(tmp_path / name) in str(raised.value)
        assert "\n" not in str(raised.value)


def test_a_file_that_cannot_be_written_is_read_as_it_is_and_says_so_where_it_is_to_be_written(tmp_path):
    whole, log = Database(tmp_path / "d", SCHEMA), tmp_path / "d-wal"
    key = whole.put_text("kept")
    whole.put("INSERT INTO numbers VALUES (7)", ())
    whole.close()
    log.mkdir()  # no log can be made, as in a folder that is read-only
    with pytest.raises(RunError, match="unable to open database file; file and folder must exist and be writable"):
        Database(tmp_path / "d", SCHEMA)
    database = Database(tmp_path / "d", SCHEMA, reading=True)
    assert (database.read("SELECT value FROM numbers"), database.text(key)) == ([(7,)], "kept")
    with pytest.raises(RunError, match=r"readonly database; file and folder must exist"):
        database.put("INSERT INTO numbers VALUES (8)", ())
    database.close()
    with pytest.raises(RunError, match="unable to open"):
        Database(tmp_path / "none" / "d", SCHEMA, reading=True)


async def test_a_write_that_fails_reaches_everybody_who_waits_for_it_and_the_file_can_be_closed(tmp_path):
    database = Database(tmp_path / "d", SCHEMA)
    database.read("PRAGMA max_page_count=8")

    async def keep(size: int) -> None:
        database.put("INSERT INTO numbers VALUES (?)", ("x" * size,))
        await database.durable()

    results = await asyncio.gather(*(keep(9000) for _ in range(8)), return_exceptions=True)
    assert any(isinstance(result, RunError) and "full; free space, and rerun the command to continue" in str(result)
               for result in results)
    database.close()
    assert rows(tmp_path / "d") < 8


def test_rows_come_in_the_order_of_their_numbers_and_are_refused_where_one_was_replaced_meanwhile(tmp_path):
    database = Database(tmp_path / "d", SCHEMA)
    for value in range(1_000):
        database.put("INSERT INTO numbers VALUES (?)", (value,))
    ordered = database.rows_by_number("numbers", "value, -value",
                                      "SELECT rowid FROM numbers ORDER BY value % 10, value")
    assert [next(ordered) for _ in range(3)] == [(0, 0), (10, -10), (20, -20)]
    assert [value for value, _ in ordered][-2:] == [989, 999]
    late = database.rows_by_number("numbers", "value", "SELECT rowid FROM numbers")
    next(late)
    database.put("DELETE FROM numbers WHERE value = 999", ())
    with pytest.raises(RunError, match="replaced rows meanwhile"):
        list(late)
    database.close()


def test_rows_that_are_read_in_order_are_not_all_in_memory(tmp_path):
    database = Database(tmp_path / "d", ("CREATE TABLE IF NOT EXISTS long (text TEXT)",))
    for _ in range(2_000):
        database.put("INSERT INTO long VALUES (?)", ("x" * 10_000,))
    tracemalloc.start()
    assert sum(len(text) for (text,) in database.rows_by_number("long", "text", "SELECT rowid FROM long")) == 20_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
    database.close()
