"""The report as a page of HTML: what it holds, and that nothing in it can act."""
import base64
import hashlib

import pytest
from report_runs import Page, Run

from ragbed.experiments.report.page import report_run
from ragbed.experiments.report.questions import linked
from ragbed.experiments.report.report_input import visible
from ragbed.experiments.runs.finished import open_finished

HOSTILE = ('</script><script>alert(1)</script><img src=x onerror="alert(2)"></div></details></main><!-- '
           "<style>*{display:none}</style>\u202egpj.exe\u202c\x00\x1b[2J\ud800\u2028\U000e0041]]>{{ 7 * 7 }}")
TABLE = "<table><tr><th>Segment</th><th>2022</th></tr><tr><td>유럽</td><td>1,234</td></tr></table>"
LONG = "word " * 100_000


@pytest.fixture
def run():
    made = Run("direct", "draft")
    made.ask("q1", "Where is the capital?", "Paris", tags={"type": ("place",)})
    made.ask(HOSTILE, HOSTILE, HOSTILE, answerable=False, tags={HOSTILE: (HOSTILE,)})
    gold, other = made.passage(1, TABLE, format="html", gold="chunk"), made.passage(2, LONG)
    made.answer("direct", "q1", "Paris [1, 2] and [9].", 0.0, (gold, other), cited=(1, 2), invalid_citations=(9,))
    made.answer("draft", "q1", evidence=(gold,), outcome="error", score=0.0)
    made.answer("direct", HOSTILE, HOSTILE, 1.0, (made.passage(1, HOSTILE, source=HOSTILE, format="html"),),
                notes=(HOSTILE,))
    return made


@pytest.fixture
def page(run, tmp_path):
    return Page(run.write(tmp_path))


def test_hostile_text_makes_no_element_and_no_attribute(run, tmp_path):
    run.summary["notes"] = [HOSTILE]
    soup = Page(run.write(tmp_path, HOSTILE)).soup
    assert not soup.find_all(["img", "iframe", "object", "embed", "link", "base"])
    assert len(soup.find_all("style")) == 1
    assert all(not name.startswith("on") and name != "style" for tag in soup.find_all() for name in tag.attrs)
    assert {tag["href"][0] for tag in soup.select("[href]")} == {"#"}
    assert "alert(1)" in soup.h1.text


def test_every_script_that_runs_is_named_by_its_hash_in_the_policy(page):
    policy = page.soup.select_one('meta[http-equiv="Content-Security-Policy"]')["content"]
    runnable = [tag for tag in page.soup.find_all(["script", "style"]) if not tag.get("type")]
    assert [tag.name for tag in runnable] == ["style", "script"]
    for tag in runnable:
        assert base64.b64encode(hashlib.sha256(tag.string.encode()).digest()).decode() in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")


def test_invisible_characters_are_written_out(page):
    shown = "⟨U+202E⟩gpj.exe⟨U+202C⟩⟨U+0000⟩⟨U+001B⟩[2J⟨U+D800⟩⟨U+2028⟩⟨U+E0041⟩"
    hostile = page.question(visible(HOSTILE))
    assert shown in hostile["text"]
    assert shown in "".join(map(str, hostile["answers"][0]["text"]))
    assert shown in page.items("evidence")[hostile["passages"][0]["text"]][0]
    assert visible("가나\tb\n\u200d") == "가나\tb\n\u200d"


def test_an_answers_citations_stand_apart_from_its_text(page):
    answer = page.question("q1")["answers"][0]
    assert answer["text"] == ["Paris [", 1, ", ", 2, "] and [", 9, "]."]
    assert (answer["cited"], answer["invalid"], answer["evidence"]) == ([1, 2], [9], [[0, 1]])


@pytest.mark.parametrize(("text", "found"), [
    ("a [ 1 ] b", ["a [ ", 1, " ] b"]), ("[1;2]", ["[", 1, ";", 2, "]"]), ("x [1-3].", ["x [", 1, "-", 3, "]."]),
    ("so¹, 10⁶", ["so", 1, ", 10⁶"]), ("b 【2†source】", ["b 【", 2, "†source】"]),
    ("d [3,] e [12345]", ["d [3,] e [12345]"]), ("", [])])
def test_every_form_of_citation_is_found_and_nothing_else(text, found):
    assert linked(text) == found


def test_a_passage_has_its_source_pages_offsets_and_gold(page):
    assert page.question("q1")["passages"][0] == {
        "source": "pages/1.html", "format": "html", "start": 1200, "end": 1200 + len(TABLE), "text": 0, "pages": [3, 4],
        "gold": "chunk"}
    assert page.items("evidence")[0] == [TABLE]


def test_prompts_are_kept_once_and_name_the_passages_that_they_hold(page):
    direct, draft = (page.items("traces")[answer["trace"]] for answer in page.question("q1")["answers"])
    assert [step["messages"] for step in direct["steps"][1:]] == [[["user", 0, 1]]]
    assert draft["steps"][1]["messages"] == [["user", 2, 3]]
    prompts = page.items("prompts")
    # The table is long enough to be named by its number; what is longer than a page holds stays literal, and is cut.
    assert prompts[2] == ["Documents:\n\n[1]\n", 0, "\n\n"]
    assert prompts[1] == ["Ask direct."]
    assert (prompts[0][1], prompts[0][-1]) == (0, {"left_out": len(LONG) + 8 - 300_000})


def test_failures_and_missing_records_are_named(page):
    assert page.question("q1")["answers"][1]["failure"] == "http_500: it broke"
    assert page.question(visible(HOSTILE))["answers"][1] is None
    words, columns = page.index["words"]["outcome"], page.index["outcome"]
    assert [words[number] for number in columns] == ["answered", "error", "answered", "missing"]


def test_the_index_has_what_the_filters_ask_for(page):
    assert page.index["ids"] == ["q1", visible(HOSTILE)]
    assert [cell["label"] for cell in page.index["cells"]] == ["direct", "draft"]
    assert page.index["score"] == [0.0, 0.0, 1.0, None]
    assert [page.index["words"]["grade"][number] for number in page.index["grade"]] == ["Wrong", "", "Correct", ""]
    assert [page.index["words"]["tag"][tag] for tag in page.index["tags"][0]] == ["type: place"]
    assert page.index["answerable"] == [1, 0]


def test_a_question_without_records_and_one_that_is_unknown_are_there(run, tmp_path):
    run.ask("q3", "Never asked?")
    run.answer("direct", "stranger", "x", 0.0)
    page = Page(run.write(tmp_path))
    assert page.index["ids"] == ["q1", visible(HOSTILE), "q3", "stranger"]
    assert page.question("q3")["answers"] == [None, None]
    assert page.question("stranger")["text"] == "(not among the run's questions)"


def test_without_room_prompts_go_first_then_traces_then_passages_and_the_page_says_so(run, tmp_path):
    whole = Page(run.write(tmp_path))
    size = {kind: sum(len(whole.soup.find(id=f"{kind}-{block}").string) for block in range(len(one["firsts"])))
            for kind, one in whole.index["kinds"].items()}
    kept = {}
    for budget in (size["questions"], size["questions"] + 1, size["questions"] + size["evidence"] + 1):
        page = Page(run.write(tmp_path, budget=budget))
        kept[budget] = [name for name, one in page.index["kinds"].items() if one["kept"]]
        notes = " ".join(page.soup.select_one("#questions").text.split())
        assert "4 prompt parts were left out" in notes or "5 prompt parts were left out" in notes
    assert list(kept.values()) == [["questions"], ["questions", "evidence"], ["questions", "evidence", "traces"]]


def test_a_run_without_cells_or_questions_still_gives_a_page(tmp_path):
    assert "The run has no questions." in Page(Run().write(tmp_path)).soup.text


def test_the_same_run_gives_the_same_bytes_and_leaves_no_other_file(run, tmp_path):
    first = run.write(tmp_path).read_bytes()
    assert run.write(tmp_path).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_of_a_large_run_the_figures_are_of_all_and_the_questions_a_stated_sample(serve, town, ragbed):
    server = serve(lambda body: {"status": 418} if "live in town 4" in body["messages"][-1]["content"]
                   else town.reply(body))
    assert ragbed("run", town.config(server.url, reasoning=["direct", "chain_of_thought"]))[0] == 0
    with open_finished(town.run) as run:
        whole = Page(report_run(run))
        part = Page(report_run(run, largest=5))  # two cells, so two questions
        again = (town.run / "report.html").read_bytes()
        assert report_run(run, largest=5).read_bytes() == again
        ids = run.folder.question_ids()
    assert len(whole.index["ids"]) == 6
    assert part.index["ids"] == [ids[place] for place in (3, 5)]  # random.Random(0).sample(range(6), 2)
    note = " ".join(part.soup.select_one("#questions .note").text.split())
    assert note.startswith("A random sample of 2 of the 6 questions (seed 0).")
    assert "A random sample" not in whole.soup.select_one("#questions").text
    for page in (whole, part):
        page.soup.select_one("#questions").extract()
    assert "2 of 12 answers failed (HTTP 418) and count as wrong." in " ".join(part.soup.main.text.split())
    assert part.soup.main == whole.soup.main
    assert part.soup.header == whole.soup.header
    assert len((town.run / "times.jsonl").read_text().splitlines()) == 12
