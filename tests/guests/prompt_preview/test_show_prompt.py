"""`ragbed show-prompt`: the messages that a model would get, and the difference of two strategies."""
import json

ASKED = ("--question", "How long is the warranty?")


def test_it_prints_each_message_and_the_texts_it_is_made_of(ragbed):
    status, out, err = ragbed("show-prompt", "direct", *ASKED)
    assert status == 0
    assert out.startswith("== call 1: answer, about 276 tokens\n-- system\nYou answer questions")
    assert "[2]\n(The text of the second passage.)\n\n</documents>" in out
    assert out.endswith("Question: How long is the warranty?\n")
    assert err == ("made of the texts direct_cited, framed_documents, rules_grounded, framed_rule, instruction, "
                   "system\n")


def test_two_strategies_are_shown_as_a_difference(ragbed):
    status, out, _ = ragbed("show-prompt", "direct", "{kind: direct, instruction: Be kind.}", *ASKED)
    assert (status, [line for line in out.splitlines() if line[:1] in "+-" and line[:2] not in ("--", "++")]) == (0, [
        "-== call 1: answer, about 276 tokens", "+== call 1: answer, about 280 tokens", "+- Be kind."])
    assert "direct and direct send the same messages" in ragbed("show-prompt", "direct", "direct", *ASKED)[1]


def test_later_calls_need_replies_and_repeat_no_message(ragbed):
    _, out, err = ragbed("show-prompt", "self_ask", *ASKED)
    assert (out.count("== call"), "--reply TEXT answers call 1" in err) == (1, True)
    replies = ("--reply", "Follow-up: who made it?", "--reply", "Follow-up: none")
    out = ragbed("show-prompt", "self_ask", *ASKED, *replies)[1]
    assert [line for line in out.splitlines() if line.startswith(("== ", "-- "))] == [
        "== call 1: self_ask, about 345 tokens", "-- system", "-- user",
        "== call 2: self_ask, about 462 tokens", "-- the 2 messages of call 1", "-- assistant", "-- user",
        "== call 3: answer, about 562 tokens", "-- the 4 messages of call 2", "-- assistant", "-- user"]
    ragbed.refuses("show-prompt", "direct", *ASKED, "--reply", "a", "--reply", "b", says=["direct uses 1 of the 2"])
    assert "5 samples" in ragbed("show-prompt", "{kind: self_consistency, of: direct}", *ASKED)[1]


def test_a_cell_of_a_settings_file_shows_the_passages_and_texts_of_its_run(town, ragbed, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "system.md").write_text("You are Polly.\x1b[31m")
    path = town.config("http://127.0.0.1:9/v1", prompts=["default", str(tmp_path / "mine")])
    status, out, _ = ragbed("show-prompt", "--settings", path, "prompts mine", "--json")
    first, = json.loads(out)
    assert status == 0
    assert first["calls"][0]["messages"][0] == {"role": "system", "content": "You are Polly.\x1b[31m"}
    assert "[1]\n" in first["calls"][0]["messages"][1]["content"]
    out = ragbed("show-prompt", "--settings", path, "prompts default", "prompts mine")[1]
    assert "+You are Polly.\\x1b[31m\n" in out
    ragbed.refuses("show-prompt", "--settings", path, "prompts x", says=["no cell 'prompts x'; choose one of: "])


def test_an_index_gives_real_passages(ragbed, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "warranty.md").write_text("# Warranty\n\nThe warranty lasts 24 months.\n")
    assert ragbed("index", tmp_path / "docs", "--out", tmp_path / "idx")[0] == 0
    out = ragbed("show-prompt", "direct", *ASKED, "--index", tmp_path / "idx")[1]
    assert "The warranty lasts 24 months." in out


def test_the_texts_that_can_be_replaced_are_listed_and_printed(ragbed):
    assert ragbed.json("show-prompt", "--texts", "paraphrase").keys() == {"paraphrase"}
    listed = ragbed("show-prompt", "--texts")[1]
    assert "exemplar" in listed
    assert "{documents} {number} {question} {solution}" in listed
    assert ragbed("show-prompt", "--texts", "system")[1].startswith("You answer questions with care.")
    ragbed.refuses("show-prompt", "--texts", "drect", says=["did you mean direct?"])
    ragbed.refuses("show-prompt", "a", "b", "c", says=["one strategy, or two"])
    ragbed.refuses("show-prompt", "direct", says=["give a question"])
