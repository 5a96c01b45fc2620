"""The DetectiveQA loader: novels by paragraph, cut before the answer, clues with their depth, titles, languages."""
import json
from pathlib import Path

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.analysis.notes import note_late_clues
from ragbed.experiments.guests.datasets.detectiveqa import DetectiveQa

FIXTURE = Path(__file__).parents[2] / "data" / "detectiveqa"
ASKED = {"question": "Who moved the lamp?", "options": {"A": "Ida", "B": "Otto"}, "answer": "B",
         "reasoning": ["There was oil on his sleeve.", "So he held it."], "clue_position": [2, -1],
         "answer_position": 4, "distraction": {"A": "Ida was near."}}
TEXT = "[1] Ida lit it.\n[2] Oil on a sleeve.\n[3] A key.\n[4] It was Otto.\n"


@pytest.fixture
def load(tmp_path):
    def load(*questions, text=TEXT, name="7-The Lamp-N. Known.txt", **settings):
        record = {"novel_id": 7, "num_paragraphs": 4, "time_cost": 1, "questions": list(questions or [ASKED])}
        (tmp_path / "7.json").write_text(json.dumps([record]))
        (tmp_path / name).write_text(text, encoding="utf-8")
        return DetectiveQa(path=str(tmp_path), **settings).load().questions
    return load


def test_the_context_ends_before_the_paragraph_that_answers(load):
    question, = load()
    assert [chunk.content for chunk in question.pool] == ["Ida lit it.", "Oil on a sleeve.", "A key."]
    assert [chunk.content for chunk in question.whole] == ["Ida lit it.\nOil on a sleeve.\nA key."]
    assert (question.provided, question.answers, question.options) == ((), ("B",), (("A", "Ida"), ("B", "Otto")))
    assert [gold.chunk for gold in question.gold] == [question.pool[1].id]


def test_a_step_is_as_deep_as_its_clue_stands_in_what_is_shown(load):
    question, = load()
    assert [(step.text, step.depth) for step in question.steps] == [
        ("There was oil on his sleeve.", 12 / 35), ("So he held it.", None)]
    assert question.drop_chunks().length == question.drop_chunks().drop_chunks().length == 35


def test_steps_that_do_not_pair_with_positions_have_no_depth_and_the_gold_stays(load):
    question, = load({**ASKED, "clue_position": [2, 1, -1]})
    assert [step.depth for step in question.steps] == [None, None]
    assert [gold.chunk for gold in question.gold] == [question.pool[1].id, question.pool[0].id]


def test_a_clue_after_the_cut_or_that_the_novel_lacks_counts_as_gold_and_is_never_shown(load):
    early, late, absent = load(ASKED, {**ASKED, "clue_position": [4, -1]}, {**ASKED, "clue_position": [90, 2]})
    assert [question.tags["clues"] for question in (early, late, absent)] == [("before",), ("late",), ("late",)]
    assert len(late.gold) == 1
    assert late.gold[0].chunk not in {chunk.id for chunk in late.pool}
    assert [step.depth for step in late.steps] == [None, None]
    assert [gold.chunk for gold in absent.gold] == [None, absent.pool[1].id]
    assert [step.depth for step in absent.steps] == [None, 12 / 35]


def test_a_run_says_how_many_questions_have_clues_that_no_condition_shows(load):
    questions = load(ASKED, {**ASKED, "clue_position": [4, -1]})
    assert note_late_clues(questions) == [
        "In 1 of 2 questions a clue comes at or after the paragraph that reveals the answer, so neither gold nor full "
        "shows it."]
    assert note_late_clues(questions[:1]) == []


def test_questions_of_a_novel_share_its_paragraphs():
    questions = DetectiveQa(path=str(FIXTURE), filter={"language": "en"}).load().questions
    first, second = (question for question in questions if question.tags["annotation"] == ("human_anno",))
    assert first.pool is second.pool
    assert first.whole[0] is second.whole[0]
    assert questions[0].pool[0] is first.pool[0]


def test_records_of_a_novel_are_merged_and_their_annotations_kept():
    questions = DetectiveQa(path=str(FIXTURE)).load().questions
    assert [(question.id, question.about) for question in questions] == [
        ("en-7-AIsup_anno-1", "The Lamp at Orl by Nobody Known"),
        ("en-7-human_anno-1", "The Lamp at Orl by Nobody Known"),
        ("en-7-human_anno-2", "The Lamp at Orl by Nobody Known"), ("zh-7-human_anno-1", "奥尔的灯 by 无名氏")]
    assert [chunk.content for chunk in questions[3].pool[2:]] == [
        "早上灯在地窖里。", "奥托的袖子上有油。", "奥托说他睡着了。"]


def test_only_the_novels_of_chosen_questions_are_read(tmp_path, load):
    (tmp_path / "8-Broken.txt").write_bytes(b"\xff\xfe")
    assert len(load()) == 1


@pytest.mark.parametrize(("text", "paragraphs"), [
    ("[0] Title\n\n[1] Ida lit it.\ngoing on.\n[3] A key.\n", ["Title", "Ida lit it. going on.", "A key."]),
    ("1. Ida lit it.\n1892 was long ago.\n2. Oil.\n", ["Ida lit it. 1892 was long ago.", "Oil."]),
    ("1\tIda lit it.\r\n2\tOil.\r\n", ["Ida lit it.", "Oil."]),
    ("\ufeff[1] Ida [2] lit it.\n[2]\n[3] A key.\n[1] is not a number here.\n",
     ["Ida [2] lit it.", "A key. [1] is not a number here."]),
    ("[1] Ida lit it.\n[2] Oil.\n[" + "9" * 5000 + "] a key.\n[3] A key.\n",
     ["Ida lit it.", "Oil. [" + "9" * 5000 + "] a key.", "A key."]),
])
def test_paragraphs_are_numbered_in_several_ways_and_may_run_over_lines(load, text, paragraphs):
    question, = load({**ASKED, "answer_position": 4, "clue_position": [1, -1]}, text=f"{text}[4] End.\n"
                     if "[" in text else f"{text}3. A key.\n4. End.\n")
    assert [chunk.content for chunk in question.pool] == [*paragraphs, *([] if "[" in text else ["A key."])]


@pytest.mark.parametrize(("name", "about"), [
    ("7-The Lamp-N. Known.txt", "The Lamp by N. Known"), ("7 - The Six-Thirty Lamp - N. Known.txt",
                                                          "The Six-Thirty Lamp by N. Known"),
    ("7-The Lamp.txt", "The Lamp"), ("novel_007.txt", ""), ("7.txt", "")])
def test_title_and_author_come_from_the_name_of_the_text_file(load, name, about):
    assert load(name=name)[0].about == about


def test_title_and_author_may_come_from_a_table(tmp_path, load):
    (tmp_path / "titles.csv").write_text("novel_id,title,author\n007,The Lamp at Orl,N. N.\n")
    assert load()[0].about == "The Lamp at Orl by N. N."
    (tmp_path / "titles.csv").unlink()
    (tmp_path / "titles.json").write_text(json.dumps({"7": {"title": "Orl"}}))
    assert load()[0].about == "Orl"


def test_the_language_is_that_of_the_question_where_no_folder_says_it(load):
    assert load({**ASKED, "question": "谁移动了灯？"})[0].tags["language"] == ("zh",)


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"answer_position": 9}, r"line 1, field questions\[0\].answer_position: expected a paragraph of 7-The Lamp-N. "
                             r"Known.txt, after its first and up to 4, found 9"),
    ({"answer_position": 1}, "answer_position: expected a paragraph of"),
    ({"answer": "C"}, r"field questions\[0\].answer: expected one of the letters A, B, found 'C'"),
    ({"options": {"A": "Ida", "C": "Otto"}}, r"field questions\[0\].options: expected 2 to 26 texts"),
    ({"clue_position": ["2"]}, r"field questions\[0\].clue_position: expected a list of paragraph numbers"),
])
def test_an_annotation_that_does_not_fit_says_where(load, changes, complaint):
    with pytest.raises(BenchmarkError, match=rf"7\.json, .*{complaint}"):
        load({**ASKED, **changes})


def test_a_novel_that_is_missing_double_or_not_numbered_says_so(tmp_path, load):
    with pytest.raises(BenchmarkError, match=r"expected one \.txt file of novel 7 in en, .* found none"):
        load(name="8.txt")
    with pytest.raises(BenchmarkError, match=r"found 007\.txt and 7-The Lamp-N\. Known\.txt"):
        load(name="007.txt") and load()
    for file in tmp_path.glob("*.txt"):
        file.unlink()
    with pytest.raises(BenchmarkError, match=r"Known\.txt, line 2: expected a paragraph number, such as \[1\], found"):
        load(text="\nChapter One\n")
    with pytest.raises(BenchmarkError, match=r"Known\.txt: no paragraph in it"):
        load(text="\n")
    (tmp_path / "7-The Lamp-N. Known.txt").write_bytes(b"[1] \xff\n")
    with pytest.raises(BenchmarkError, match="cannot be read as text in UTF-8"):
        DetectiveQa(path=str(tmp_path)).load()


def test_novels_of_another_dataset_on_the_hub_are_fetched_with_their_titles(tmp_path, load, monkeypatch):
    load()
    fetched = {}
    monkeypatch.setattr("huggingface_hub.snapshot_download",
                        lambda name, **options: fetched.update({name: set(options["allow_patterns"])}) or tmp_path)
    assert DetectiveQa(path="hub:a/asked", novels="hub:a/novels").load().questions
    assert fetched["a/novels"] >= {"*.txt", "*.csv", "*.json"}


MEMORY = {"context": "Ida lit the lamp.\n\nThere was oil on a sleeve.\nIt was cold.",
          "questions": ["Who lit the lamp?\nA. Ida\nB. Otto\n\nReply with a letter.",
                        "Why did A. Hunter leave? Options: (A) Fear (B) Love",
                        "What was on the sleeve?\nOptions: {'A': 'oil', 'B': \"Otto's ink\"}"],
          "answers": [["A"], ["B. Love"], ['{"answer": "B", "reasoning": "..."}']],
          "metadata": {"source": "detective_qa", "qa_pair_ids": ["x0", "x1", "x2"]}}


def test_rows_of_memory_agent_bench_are_questions_over_their_whole_context(tmp_path):
    other = {"context": "A book.", "questions": ["Sum up."], "answers": [["It is."]],
             "metadata": {"source": "infbench_sum_eng_shots2"}}
    first, second, third = loaded(DetectiveQa, tmp_path / "rows.jsonl", other, MEMORY).questions
    assert (first.id, first.text, first.answers, first.options) == (
        "detective_qa-1-1", "Who lit the lamp?", ("A",), (("A", "Ida"), ("B", "Otto")))
    assert [chunk.content for chunk in first.pool] == [
        "Ida lit the lamp.", "There was oil on a sleeve.", "It was cold."]
    assert first.whole[0].content == "Ida lit the lamp.\n\nThere was oil on a sleeve.\nIt was cold."
    assert (second.text, second.answers, second.options) == (
        "Why did A. Hunter leave?", ("B",), (("A", "Fear"), ("B", "Love")))
    assert (third.answers, third.options) == (("B",), (("A", "oil"), ("B", "Otto's ink")))
    assert third.gold == third.steps == ()


def test_a_row_of_memory_agent_bench_without_options_is_refused_in_one_line(tmp_path):
    with pytest.raises(BenchmarkError, match=r"line 1, field questions\[0\]: expected options A, B, C and so on"):
        loaded(DetectiveQa, tmp_path / "rows.jsonl", {**MEMORY, "questions": ["Who?"], "answers": [["Ida"]]})
    with pytest.raises(BenchmarkError, match="field answers: expected one for each of the 3 questions"):
        loaded(DetectiveQa, tmp_path / "rows.jsonl", {**MEMORY, "answers": [["A"]]})


def test_the_whole_text_is_shown_by_default_for_memory_agent_bench():
    assert DetectiveQa.run_as({"path": "hub:ai-hyz/MemoryAgentBench"})["conditions"] == "full"
    assert DetectiveQa.run_as({"path": "novels"})["conditions"] == ["full", "closed-book", "gold"]
