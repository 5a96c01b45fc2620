"""What cells were made from, in the report and in `ragbed compare`."""
import json

from bs4 import BeautifulSoup

PARTS = ["model", "strategy", "prompts", "searches", "questions", "settings"]


def run_as(ragbed, town, url, name, **settings):
    code, _, said = ragbed("run", town.config(url, file=name, name=name, **settings))
    assert code == 0, said
    return town.run.parent / name


def test_compare_says_what_differs_between_two_runs(serve, town, ragbed, tmp_path):
    server, texts, code = serve(town.reply), tmp_path / "mine", tmp_path / "my.py"
    texts.mkdir()
    body = ("from ragbed.strategies.reasoning.direct import direct\n\n\n"
            "def own(task):\n    return (yield from direct(task))\n")
    code.write_text(body)
    (texts / "direct_cited.md").write_text("Answer briefly and cite.")
    settings = {"reasoning": [f"{code}:own"], "prompts": [str(texts)]}
    first = run_as(ragbed, town, server.url, "first", **settings)
    same = run_as(ragbed, town, server.url, "same", **settings)
    (texts / "direct_cited.md").write_text("Answer briefly, and cite.")
    code.write_text(body + "# a comment\n")
    second = run_as(ragbed, town, server.url, "second", **settings, conditions=["gold"], layout="as_published")

    assert ("The compared cells have the same model, strategy, prompts, searches, questions and settings."
            in ragbed("compare", first, same)[1].replace("\n", " "))
    row, = ragbed.json("compare", first, second)["comparisons"]
    assert {one["part"]: one["text"] for one in row["differs"]} == {
        "strategy": f"{code}:own changed", "prompts": "mine/direct_cited.md changed",
        "settings": "condition: provided → gold; framing: delimited → none; layout: documents_first → as_published"}
    assert row["differs"][1]["first"]["ragbed's"] == row["differs"][1]["second"]["ragbed's"]
    assert row["differs"][1]["first"]["mine/direct_cited.md"] != row["differs"][1]["second"]["mine/direct_cited.md"]
    assert "prompts (mine/direct_cited.md changed)" in ragbed("compare", first, second)[1].replace("\n", " ")


def test_pairs_of_one_run_are_counted_by_what_differs(serve, town, ragbed):
    run = run_as(ragbed, town, serve(town.reply).url, "several", reasoning=["direct", "chain_of_thought"],
                 conditions=["provided", "gold"])
    said = ragbed("compare", run)[1].replace("\n", " ")
    assert "What differs within the 4 pairs: strategy in 2, settings in 2; --json has the details." in said


def test_the_report_shows_what_cells_share_once(serve, town, ragbed):
    run = run_as(ragbed, town, serve(town.reply).url, "shown", reasoning=["direct", "chain_of_thought"])
    inputs = ragbed.json("report", run)["inputs"]
    assert [list(one) for one in inputs.values()] == [PARTS, PARTS]
    manifest = json.loads((run / "manifest.json").read_text())
    assert {one["questions"][manifest["benchmark"]["name"]] for one in inputs.values()} == {
        manifest["benchmark"]["hash"][:12]}
    page = BeautifulSoup((run / "report.html").read_text(), "html.parser")
    fold = page.find(attrs={"data-view": "inputs"}).details
    rows = [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in fold.select("tbody tr")]
    assert [row[-2] for row in rows if len(row) > 1] == [
        "model", "strategy", "prompts", "questions", "settings", "strategy", "strategy"]
    assert [row[-1].rpartition(" ")[0] for row in rows][-2:] == ["reasoning direct", "reasoning chain_of_thought"]
