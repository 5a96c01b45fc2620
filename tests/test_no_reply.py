"""A run whose questions had no reply says so before anything else, and is not replayed before it has finished."""
import sqlite3


def test_a_run_without_any_reply_says_that_its_figures_say_nothing(serve, town, ragbed):
    server = serve(lambda _: {"status": 400})
    status, out, _ = ragbed("run", town.config(server.url, reasoning=["direct", "plan_and_solve"]))
    assert status == 1
    assert "All 12 answers failed: the figures say nothing about the cells." in out
    assert "highest" not in out


def test_many_failures_come_before_the_verdict(serve, town, ragbed):
    server = serve(lambda body: {"status": 400} if "town 3" in str(body) else town.reply(body))
    status, out, _ = ragbed("run", town.config(server.url, reasoning=["direct", "plan_and_solve"]))
    assert status == 0
    assert "\n4 of 12 answers failed and count as wrong. " in out


def test_a_stopped_run_is_not_replayed_but_continued(serve, town, ragbed):
    server = serve(town.reply)
    config = town.config(server.url)
    assert ragbed("run", config)[0] == 0
    with sqlite3.connect(town.run / "records.sqlite") as connection:
        connection.execute("DELETE FROM records WHERE question = (SELECT min(question) FROM records)")
    (town.run / "summary.json").unlink()
    ragbed.refuses("run", config, "--journal", "replay", says=["has not finished", "without --journal replay"])
    assert ragbed("run", config)[0] == 0
    assert ragbed("run", config, "--journal", "replay")[0] == 0
