"""`ragbed construct mrke` with a writer whose every flaw is known, and twins that tell remembering from reading."""
import json
import re
from pathlib import Path

import pytest

from ragbed.experiments.guests.construct.kinds.mrke import check_chain
from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.construct.text_edits import (
    add_partial_names,
    apply_edits,
    contains,
    find_names,
    find_problem,
    invert,
    sentence_spans,
)
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.datasets.mrke import Mrke
from ragbed.experiments.guests.review.items import Item
from ragbed.strategies import REFUSAL

FACTS = ("The {0} family founded the {1} hotels.", "{1} has its head office in {2}.", "{2} lies on the lake {3}.",
         "{3} was drained by {4}.")
ASKED = ("Which hotels did the {0} family found?", "In which town is the head office of {1}?",
         "On which lake lies {2}?", "Who drained {3}?")
WHOLE = {2: "In which town is the head office of the hotels that the {0} family founded?",
         3: "On which lake lies the town of the hotels that the {0} family founded?",
         4: "Who drained the lake by the town of the hotels that the {0} family founded?"}
ENDINGS = {"sound": "er", "copy": "er", "survivor": "ov", "standing": "ak", "unneeded": "in", "unedited": "ull",
           "known": "ot", "collision": "ent", "chain": "yd", "given away": "ith", "wrong": "im"}
OLD = {flaw: [f"{stem}{end}" for stem in ("Ast", "Bor", "Selk", "Mirn", "Quill")] for flaw, end in ENDINGS.items()}
NEW = {flaw: [f"{stem}{end}" for stem in ("Orl", "Tess", "Marn", "Dunl", "Brand")] for flaw, end in ENDINGS.items()}
OLD["unedited"][3] = NEW["unedited"][3] = "long water"
NEW["survivor"][1] = OLD["survivor"][1]
REASONS = {"survivor": "no original name", "standing": "sub-answers", "unneeded": "each hop needed",
           "unedited": "original answer", "known": "not known", "chain": "linked chain",
           "given away": "linked chain", "wrong": "solvable"}
FLAWED = 3
"""The hops of the question that has the flaw, where one question has it; the others over its passage are sound."""


def flaw_of(text):
    return next(flaw for flaw in OLD if f"{NEW[flaw][0]} family" in text or f"{OLD[flaw][0]} family" in text)


def page(flaw):
    again = f" The {OLD[flaw][0]} family owns all the beach of the lake {OLD[flaw][3]}." if flaw == "unneeded" else ""
    return " ".join(FACTS).format(*OLD[flaw]).replace("drained", "dammed") + again


def kinds(table):
    return {old: {"kind": "name", "new": new} for old, new in table.items()}


def table(flaw):
    found = {old: new for old, new in zip(OLD[flaw], NEW[flaw], strict=True) if old != "long water"}
    if flaw == "collision":
        found[OLD[flaw][0]] = OLD[flaw][4]
    others = [{"old": "dammed", "new": "drained"}, {"old": "not there", "new": "there"}]
    return {"names": kinds(found), "others": others}


def chain(flaw, hops):
    names = NEW[flaw]
    steps = [{"question": ASKED[at].format(*names), "answer": names[at + 1]} for at in range(hops)]
    question, answer = WHOLE[hops].format(*names), names[hops]
    if hops == FLAWED:
        if flaw == "standing":
            steps[1]["answer"] = "Nowhere"
        if flaw == "chain":
            steps[2]["question"] = "On which lake lies it?"
        if flaw == "given away":
            question = f"{question} It is {names[1]}."
        if flaw == "wrong":
            answer = steps[2]["answer"] = names[4]
    return {"steps": steps, "question": question, "answer": answer}


def reply(body):
    """The writer, and a solver that answers a question where each fact that it takes is before it."""
    shown = body["messages"][-1]["content"]
    if "<names>" in shown:
        return json.dumps(table(flaw_of(shown)))
    if "<second>" in shown:
        flaw, at = next((flaw, at) for flaw in NEW for at in (1, 2, 3) if NEW[flaw][at] in shown
                        and (ASKED[at].format(*NEW[flaw]) in shown or (at == 2 and "lies it?" in shown)))
        return json.dumps({"question": chain(flaw, at + 1)["question"]})
    if "<passage>" in body["messages"][0]["content"]:
        first, place = body["messages"][0]["content"], len(body["messages"]) // 2
        return json.dumps(chain(flaw_of(first), int(re.search(r"first of (\d)", first)[1]))["steps"][place])
    flaw, hops = next((flaw, hops) for flaw in NEW for hops in WHOLE if WHOLE[hops].format(*NEW[flaw]) in shown)
    read = [fact.format(*NEW[flaw]) in shown for fact in FACTS[:hops]]
    known = flaw == "known" and hops == FLAWED
    told = flaw == "unneeded" and hops == FLAWED and "beach" in shown
    return f"<Answer>{NEW[flaw][hops]}</Answer>" if all(read) or known or told else REFUSAL


def build(ragbed, url, *more):
    return ragbed.json("construct", "mrke", *more, "--writer", f"{url}#m")


@pytest.fixture
def built(tmp_path, serve, ragbed):
    pages = tmp_path / "pages"
    pages.mkdir()
    for flaw in OLD:
        (pages / f"{flaw}.txt").write_text(page(flaw), encoding="utf-8")
    return tmp_path / "set", build(ragbed, serve(reply).url, pages, "--out", tmp_path / "set", "--n", "40")


def test_every_flaw_is_lost_at_its_filter_and_the_others_load_as_mrke_each_with_its_original(built):
    folder, counts = built
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    ends = {}
    for row in rows:
        text = " ".join(row["item"]["made"].get("contents") or [one["content"] for one in row["item"]["chunks"]])
        ends.setdefault((flaw_of(text), int(row["item"]["tags"].get("hops", 0))), []).append(row["lost"])
    wanted = {(flaw, hops): [filter_ if flaw == "survivor" or hops == FLAWED else ""]
              for flaw, filter_ in REASONS.items() for hops in WHOLE}
    wanted |= {("sound", hops): ["", "duplicate"] for hops in WHOLE} | {("collision", 0): ["edit"]}
    assert ends == wanted
    assert counts["yield"]["kept"] == 17
    edited_ones = Mrke(path=str(folder / "mrke")).load().questions
    both = Mrke(path=str(folder / "mrke"), versions="both").load().questions
    assert (len(edited_ones), len(both)) == (17, 34)
    question = next(one for one in edited_ones if one.text == WHOLE[3].format(*NEW["sound"]))
    original = next(one for one in both if one.tags["pair"] == question.tags["pair"])
    assert (question.answers, question.sub_answers) == (("Dunler",), ("Tesser", "Marner", "Dunler"))
    assert question.sub_questions == ("Which hotels did the Orler family found?",
                                      "In which town is the head office of #1?", "On which lake lies #2?")
    assert (original.text, original.answers) == (WHOLE[3].format(*OLD["sound"]), ("Mirner",))
    assert [chunk.content for chunk in original.provided] == [page("sound")]
    assert question.tags["hops"] == ("3",)
    assert [gold.chunk for gold in question.gold] == [chunk.id for chunk in question.provided]


@pytest.mark.parametrize(("second", "question", "why"), [
    ("Where is Tesser's head office?", "Where is the head office of the hotels?", None),
    ("Where is it?", "Where is the head office of the hotels?",
     "a later sub-question does not refer to an earlier answer"),
    ("Where is Tesser?", "Where is Tesser's head office?", "the question gives away a sub-answer")])
def test_a_chain_leads_on_where_an_answer_is_named_in_any_case(second, question, why):
    item = Item("1", question, made={"sub_questions": ["Which hotels?", second], "sub_answers": ["Tesser", "Marner"]})
    assert check_chain(item, None) == why


@pytest.mark.parametrize(("text", "table", "made"), [
    ("Ada Quill of Ada. ADA, adage and ada.", {"Ada": "Ivo", "Ada Quill": "Una Roe"},
     "Una Roe of Ivo. IVO, adage and ada."),
    ("Red doors, a red roof.", {"red": "blue"}, "Blue doors, a blue roof."),
    ("1,577 of 577 in 1987.", {"577": "612", "1987": "1991"}, "1,577 of 612 in 1991."),
    ("A to B.", {"A": "B", "B": "A"}, "B to A."),
    ("Ada\nQuill’s mill.", {"Ada Quill": "Una Roe"}, "Una Roe’s mill."),
    ("서울은 크다.", {"서울": "가람"}, "가람은 크다.")])
def test_a_table_edits_whole_words_the_longest_first_and_keeps_their_case(text, table, made):
    assert apply_edits(text, table) == made


def test_a_table_is_taken_back_and_refused_where_it_is_not_consistent():
    table = {"Clemens Meyer": "Otto Brandt", "Halle": "Marn"}
    whole = add_partial_names(table, ["Meyer", "Halle"])
    assert whole == {**table, "Meyer": "Brandt"}
    assert add_partial_names({"Ada M. Quill": "Una Zed Roe", "Ulm Old Hall": "Marn"},
                             ["Ada Quill", "M.", "Old Hall"]) == {
        "Ada M. Quill": "Una Zed Roe", "Ulm Old Hall": "Marn", "Ada Quill": "Una Roe", "M.": "Zed", "Old Hall": "Marn"}
    assert apply_edits(apply_edits("Clemens Meyer left Halle.", whole), invert(whole)) == "Clemens Meyer left Halle."
    assert [find_problem(one, "Halle and Marn") for one in ({}, {"Halle": "marn"}, {"Halle": "Ulm", "Marn": "Ulm"},
                                                            {"Halle": "Ulm"})] == [
        "no word to replace is in its text", "a replacement is already in the text",
        "two words have the same replacement", None]
    assert (contains("March", "They march."), contains("March", "In March.")) == (False, True)


def test_sentences_end_where_another_begins():
    text = "It was St. Ann's of 3.5 acres. \"Is it?\" she said.\nA heading\nLast one"
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "It was St. Ann's of 3.5 acres.", '"Is it?" she said.', "A heading", "Last one"]


HOTPOT = Path("tests/data/hotpotqa_195/hotpot_dev_distractor_v1.jsonl")


def invented(name):
    """A name of as many words, the same for the same words; a figure is another figure."""
    return " ".join(re.sub(r"\d", lambda digit: str(9 - int(digit[0])), word) if any(map(str.isdecimal, word)) else
                    "Q" + "".join(chr(ord("a") + ord(letter) * 7 % 26) for letter in word.lower() if letter.isalnum())
                    for word in name.split())


class Twins:
    """Writes the table of each twin, and answers it where the passages that it is asked over say the answer."""

    def __init__(self, benchmark):
        self.library = Library(benchmark.documents, benchmark.all_chunks, 1, 0, 0, None, lambda: None)
        self.answers = {question.text: question.answers[0] for question in benchmark.questions}
        self.edited = {}

    def __call__(self, body):
        shown = body["messages"][-1]["content"]
        if "<names>" in shown:
            text, listed = (re.search(rf"<{mark}>\n(.*?)\n</{mark}>", shown, re.DOTALL)[1]
                            for mark in ("passage", "names"))
            question = text.rpartition("\n\n")[2]
            table = {name: name if "Maughan" in name else invented(name) for name in listed.splitlines()}
            if "Velvetpark" in question:
                table["Velvetpark"] = "Shape"
            whole = add_partial_names(table, [*find_names(text, self.library), self.answers[question]])
            self.edited[apply_edits(question, whole)] = apply_edits(self.answers[question], whole)
            return json.dumps({"names": kinds(table), "others": []})
        question = next(one for one in self.edited if one in shown)
        answer = self.edited[question]
        return f"<Answer>{answer}</Answer>" if contains(answer, shown.replace(question, "")) else REFUSAL


@pytest.mark.slow
def test_twins_tell_a_memoriser_from_a_reader(serve, ragbed, tmp_path):
    lines, folder = HOTPOT.read_text(encoding="utf-8").splitlines(keepends=True), tmp_path / "set"
    yes_or_no = lines[58]
    (tmp_path / "some.jsonl").write_text("".join([*lines[:14], yes_or_no]), encoding="utf-8")
    some = HotpotQa(path=str(tmp_path / "some.jsonl"))
    counts = build(ragbed, serve(Twins(some.load())).url, "--from", f"hotpotqa:{some.path}", "--out", folder,
                   "--n", "20")
    assert {filter_: why for filter_, why in counts["yield"]["lost"].items() if why} == {
        "edit": {"a replacement is already in the text": 1,
                 "its answer is not in a gold passage, so no edit changes it": 1},
        "no original name": {"an original name survives": 1}}
    questions = Mrke(path=str(folder / "mrke"), versions="both").load().questions
    pairs = {one.tags["pair"]: one for one in questions if one.tags["version"] == ("original",)}
    assert (len(questions), len(pairs)) == (24, 12)

    def reply(body):
        shown = body["messages"][-1]["content"]
        question = next(one for one in questions if one.text in shown and one.provided[0].content in shown
                        and one.provided[-1].content in shown)
        known = pairs[question.tags["pair"]] if body["model"] == "memoriser" else question
        return f"<Answer>{known.answers[0]}</Answer>"

    url = serve(reply).url
    run = ragbed.json("run", "mrke", folder / "mrke", "--model", f"{url}#memoriser", "--model", f"{url}#reader",
                      "--reasoning", "direct", "--set", "benchmark.versions=both", "--out", tmp_path / "runs")
    gap = next(one for one in run["views"] if one["name"] == "gap")
    changes = {row[1]: row[gap["header"].index("em: change")] for row in gap["rows"]}
    assert {cell: (one["mean"], one["n"]) for cell, one in changes.items()} == {
        "memoriser": (-1.0, 12), "reader": (0.0, 12)}
    assert changes["memoriser"]["high"] < -0.5
    assert changes["reader"]["low"] < 0 < changes["reader"]["high"]
