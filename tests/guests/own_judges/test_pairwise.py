"""`ragbed judge RUN --against CELL`: two answers to each question, in both orders."""
import pytest

from ragbed.experiments.guests.own_judges.pairwise import outcome


@pytest.mark.parametrize(("forward", "backward", "expected"), [
    ("A", "B", (1.0, False)), ("B", "A", (0.0, False)), ("Tie", "Tie", (0.5, False)), ("A", "Tie", (0.5, False)),
    ("A", "A", (0.5, True)), ("B", "B", (0.5, True)), ("A", "unreadable twice", (None, False))])
def test_an_answer_wins_only_in_both_orders(forward, backward, expected):
    assert outcome(forward, backward) == expected


def shorter(body):
    """Prefer the shorter answer, or the first one if the question is about town 4."""
    text = body["messages"][0]["content"]
    first, second = (text.split(f"<answer_{name}>\n")[1].split("\n</answer")[0] for name in "ab")
    if "town 4" in text:
        return "Reason: It comes first.\nWinner: A"
    if "town 2" in text:
        return "A or B"
    return f"Winner: {'A' if len(first) < len(second) else 'B'}"


def test_cells_are_compared_in_both_orders_and_flips_are_counted(serve, town, ragbed, tmp_path):
    def reply(body):
        text = body["messages"][0]["content"]
        if "<answer_a>" in text:
            return shorter(body)
        said = town.reply(body)
        return "<Answer>As I said, it is so [1]</Answer>" if "step by step" in str(body) else said

    server = serve(reply)
    ragbed.json("run", town.config(server.url, reasoning=["direct", "chain_of_thought"]))
    sent = len(server.requests)
    command = ("judge", town.run, "--against", "direct", "--judge", f"{server.url}#m")
    made, = ragbed.json(*command)["cells"]
    assert {name: made[name] for name in ("cell", "pairs", "wins", "ties", "losses", "flips", "unread")} == {
        "cell": "chain_of_thought", "pairs": 6, "wins": 1, "ties": 1, "losses": 3, "flips": 1, "unread": 1}
    assert (made["win_rate"]["mean"], made["win_rate"]["n"], made["p"]) == (0.3, 5, 0.625)
    asked = len(server.requests) - sent
    assert asked == 14  # six pairs in both orders, and two replies that could not be read
    status, out, _ = ragbed(*command)
    assert (status, len(server.requests) - sent) == (0, asked)
    assert "Wins against direct, judged by " in out
    assert "A flip is a pair whose winner changed with the order; it is a tie." in " ".join(out.split())
    said = " ".join(ragbed("compare", town.run)[1].split())
    assert (f"Judged side by side by {server.url}#m, chain_of_thought wins 1, ties 1 and loses 3 of 5 judged pairs "
            "with direct (sign test, p 0.625).") in said
    said = " ".join(ragbed("compare", town.run, "--baseline", "chain_of_thought")[1].split())
    assert "direct wins 3, ties 1 and loses 1 of 5 judged pairs with chain_of_thought (sign test, p 0.625)" in said
    ragbed("report", town.run)
    assert f"Wins against direct, judged by {server.url}#m" in (town.run / "report.html").read_text()
    stored = (town.run / "pairwise.json").read_text()
    for damaged in ("[", stored.replace('"wins": 1', '"wins": "<b>"'), stored.replace('"results": "', '"results": "x')):
        (town.run / "pairwise.json").write_text(damaged)
        assert "side by side" not in ragbed("compare", town.run)[1]
    (town.run / "pairwise.json").write_text(stored)
    ragbed.refuses("judge", town.run, "--against", "x", "--judge", "m", says=["no cell 'x'"])
    ragbed.refuses("judge", town.run, "--against", "direct", says=["--against needs one --judge MODEL"])
    ragbed.refuses("judge", town.run, "--rubric", "x", says=["--rubric belongs to --against"])
    (tmp_path / "bad.md").write_text("{first}")
    ragbed.refuses(*command, "--rubric", tmp_path / "bad.md", says=["needs the fields {first} and {second}"])
    (tmp_path / "good.md").write_text("Which is kinder?\nWinner: A, B or Tie\n<answer_a>\n{first}\n</answer_a>\n"
                                      "<answer_b>\n{second}\n</answer_b>")
    assert ragbed.json(*command, "--rubric", tmp_path / "good.md")["cells"][0]["unread"] == 0
