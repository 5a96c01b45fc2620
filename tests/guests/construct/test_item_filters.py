"""Each flaw of an item is caught by its filter, and sound items pass all.

The solver is scripted: it answers if the sentences of its answer are in the prompt, or if it knows the question by
heart, and otherwise refuses.
"""
import inspect
from dataclasses import replace

import numpy as np
import pytest
from each_case import each

from ragbed.agents import Scripted
from ragbed.documents import Chunk, Document
from ragbed.experiments.guests.construct import filters
from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.datasets.clapnq import ClapNq
from ragbed.experiments.guests.datasets.financebench import FinanceBench
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.datasets.korean_rag import KoreanRag
from ragbed.experiments.guests.hard_negatives.guard import Guard, GuardedIndex, Thresholds
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.question import Question
from ragbed.strategies import REFUSAL
from ragbed.strategies.types import Draft

PAGES = {
    "esk": "The Esk depot opened in 1911. Its crane was built by Ada Lindqvist of Lund. It lifts 12.5 tonnes.",
    "lund": "Lund lies in Scania. The yard of Lindqvist in Lund closed in 1933 after a fire that nobody explained.",
    "mill": "The mill at Rosk ground barley. Its wheel was of oak, and the wheel turned until the river was moved.",
    "은행": "에스크 은행의 최저자본금은 250억원이다. 은행장은 김하늘이며, 본점은 군산에 있다.",
    "공원": "군산의 달빛공원은 호수를 둘러싼다. 공원에는 벚나무가 많고 봄마다 축제가 열린다."}
MAKER, CRANE, YARD = (
    "Its crane was built by Ada Lindqvist of Lund.", "It lifts 12.5 tonnes.",
    "The yard of Lindqvist in Lund closed in 1933 after a fire that nobody explained.")
CAPITAL, BANKER = "에스크 은행의 최저자본금은 250억원이다.", "은행장은 김하늘이며, 본점은 군산에 있다."
BY_HEART = {"In which province does the town of Lund lie?": "Scania", "군산의 호수 공원 이름은 무엇인가요?": "달빛공원"}


class Still:
    """An embedder in whose eyes every question is another one, except two that ask the same in other words."""

    name, identity, dimension, window = "still", "still-1", 64, 100

    def embed_queries(self, texts):
        same = {"What can the Esk crane carry?": LOAD.question}
        return np.stack([np.eye(64, dtype=np.float32)[sum(map(ord, same.get(text, text))) % 64] for text in texts])


def library_of(pages=PAGES, solvers=2):
    documents = {name: Document(name, f"{name}.txt", name, text, text) for name, text in pages.items()}
    chunks = [Chunk.of(one, "plain", 0, len(one.plain)) for one in documents.values()]
    return Library(documents, chunks, solvers, 0, 0, None, Still)


LIBRARY = library_of()


def span(name, text):
    start = PAGES[name].index(text)
    return Evidence(name, "plain", start, start + len(text), text)


def item(question, answer, *evidence, **fields):
    spans = tuple(span(name, text) for name, text in evidence)
    chunks = tuple(chunk for chunk in LIBRARY.chunks if chunk.document in {one.document for one in spans} | {"mill"})
    return Item("i", **{"question": question, "answers": (answer,), "evidence": spans, "chunks": chunks} | fields)


LOAD = item("How many tonnes does the crane of the Esk depot lift?", "12.5 tonnes", ("esk", CRANE))
HOPS = item("In which year did the yard close whose owner built the crane at Esk?", "1933", ("esk", MAKER),
            ("lund", YARD))
BANK = item("에스크 은행의 최저자본금은 얼마인가요?", "250억원", ("은행", CAPITAL))
SOUND = [LOAD, HOPS, BANK]
ABSENT = item("Who owned the mill at Rosk?", "Greta Holm", answerable=False)
ABSENT_KOREAN = item("달빛공원을 설계한 사람은 누구인가요?", "박서준", answerable=False)


def solver(call):
    """Answer by heart, or from the sentences of the item's evidence, of which the year stands in the last alone."""
    said = call.messages[-1].content
    known = next((answer for question, answer in BY_HEART.items() if question in said), None)
    read = next((one.answers[0] for one in SOUND if one.question in said
                 and all(each.text in said for each in one.evidence)), None)
    return f"<Answer>{known or read or REFUSAL}</Answer>"


def passed(filter_, one, library=LIBRARY, reply=solver):
    """Return what a filter says of an item; the scripted solver answers its calls."""
    result = []

    def recipe(task):
        came = filter_(one, library)
        result.append((yield from came) if inspect.isgenerator(came) else came)
        return Draft("", (), refused=False, well_formed=True, tagged=None)

    Scripted(reply).play(recipe)
    return result[0]


FILTERS = [filters.check_spans, filters.check_self_contained, filters.check_solvable, filters.check_unknown,
         filters.check_needs_evidence,
         filters.check_unique]
FLAWED = [
    (filters.check_spans, replace(LOAD, evidence=(replace(LOAD.evidence[0], text="It lifts 13 tonnes."),)),
     "not in the document"),
    (filters.check_spans, replace(LOAD, evidence=()), "no evidence"),
    (filters.check_self_contained, replace(LOAD, question="How many tonnes does the crane in the passage lift?"),
     "the passage"),
    (filters.check_self_contained, replace(BANK, question="위 문서에서 에스크 은행의 최저자본금은 얼마인가요?"),
     "위 문서"),
    (filters.check_solvable, replace(LOAD, answers=("14 tonnes",)), "do not find"),
    (filters.check_solvable, replace(BANK, answers=("300억원",)), "do not find"),
    (filters.check_unknown,
     item("In which province does the town of Lund lie?", "Scania", ("lund", "Lund lies in Scania.")),
     "without documents"),
    (filters.check_unknown, item("군산의 호수 공원 이름은 무엇인가요?", "달빛공원", ("공원", "군산의 달빛공원은")),
     "without documents"),
    (filters.check_needs_evidence, replace(LOAD, evidence=(*LOAD.evidence, span("lund", YARD))), "without one piece"),
    (filters.check_needs_evidence, replace(BANK, evidence=(
        *BANK.evidence, span("공원", "공원에는 벚나무가 많고"))), "without one piece"),
    (filters.check_unique, item("Which town did the maker of Esk's crane come from?", "Lund", ("esk", MAKER)),
     "second passage"),
    (filters.check_unique, item("에스크 은행의 본점은 어디에 있나요?", "군산", ("은행", BANKER)), "second passage")]


@pytest.mark.parametrize("one", SOUND)
def test_no_filter_loses_a_sound_item(one):
    for filter_ in FILTERS:
        assert not isinstance(passed(filter_, one), str)


@each(("filter_", "one", "why"), FLAWED)
def test_a_flaw_is_caught_by_its_own_filter(filter_, one, why):
    assert why in passed(filter_, one)


@each("question", [
    "According to the report, what is the share of exports?", "What does Table 3 show about emissions?",
    "Based on the information given, which city is larger?", "As stated above, what is the rate?", "Where was he born?",
    "Which of the following is a reason for the delay?", "What does the author argue about inflation?",
    "How much revenue did the company report for fiscal 2022?", "본문에 따르면 최저자본금은 얼마인가요?",
    "앞서 언급된 두 기관의 차이는 무엇인가요?", "다음 표에서 가장 큰 값은 무엇인가요?", "그는 언제 태어났나요?"])
def test_a_question_that_points_outside_itself_is_not_self_contained(question):
    assert filters.check_self_contained(Item("i", question), LIBRARY).startswith("it refers to")


@each("question", [
    "When was the Table Mountain cableway opened?", "What is the text of the Second Amendment about?",
    "Does the article from Fortune name FTX?", "Which section of the brain controls speech?",
    "What was the income of the company that Ford founded?", "How is it that the moon causes tides?",
    "이글루는 무엇으로 만드나요?", "다음 글로벌 금융위기는 언제 올까요?",
    "공정거래위원회 보고서에 따르면 담합은 몇 건인가요?"])
def test_a_question_that_names_what_it_asks_about_is_self_contained(question):
    assert filters.check_self_contained(Item("i", question), LIBRARY) is None


def test_of_a_hundred_real_questions_no_more_than_one_is_taken_for_one_that_points_outside_itself(data):
    asked = [benchmark.text for path, kind in (("hotpotqa/hotpotqa_100.json", HotpotQa), ("clapnq", ClapNq),
                                               ("financebench", FinanceBench), ("korean_rag", KoreanRag))
             for benchmark in kind(path=str(data / path)).load().questions]
    alarms = [text for text in asked if filters.check_self_contained(Item("i", text), LIBRARY)]
    assert len(alarms) <= len(asked) / 100


def test_options_make_a_question_about_the_following_whole():
    one = Item("i", "Which of the following did Rosk grind?", options=("wheat", "barley"))
    assert filters.check_self_contained(one, LIBRARY) is None


def test_an_item_that_is_answered_from_what_is_left_does_not_need_its_evidence():
    again = LIBRARY.chunks[0]
    twice = replace(LOAD, chunks=(*LOAD.chunks, replace(again, id="copy", document="copy")))
    assert passed(filters.check_needs_evidence, twice) == "most solvers answer it with its evidence removed"


def test_the_other_rendering_of_the_evidence_is_removed_with_it_and_is_no_second_passage():
    html = f"<p>{PAGES['esk']}</p>"
    page = Document("esk", "esk.html", "esk", html, PAGES["esk"])
    both = Library({**LIBRARY.documents, "esk": page}, [*LIBRARY.chunks, Chunk.of(page, "html", 0, len(html))], 2, 0, 0,
                   None, Still)
    shown = replace(LOAD, chunks=(*LOAD.chunks, both.chunks[-1]))
    assert passed(filters.check_needs_evidence, shown, both).measured["without_evidence"] == 0.0
    assert passed(filters.check_unique, shown, both) is None


def test_a_long_text_that_reads_like_the_evidence_is_a_second_passage_and_a_header_of_it_is_none():
    row = "Freight handled at Esk in 1911, in tonnes a month, as the harbour office of Lund counted it: "
    pages = {"a": f"{row}10, 11, 12 and so on.", "b": f"{row}10, 11, 12 and so on. Nobody doubted these figures.",
             "c": "Freight handled at Esk in 1911, in tonnes"}
    library = library_of(pages)
    one = Item("i", "Did freight at Esk rise in 1911?", ("yes",),
               evidence=(Evidence("a", "plain", 0, len(pages["a"]), pages["a"]),))
    assert "a second passage may answer it" in passed(filters.check_unique, one, library)
    assert passed(filters.check_unique, one, library_of({name: pages[name] for name in "ac"})) is None


def test_what_solvers_measured_stands_in_the_item():
    measured = {}
    for filter_ in (filters.check_solvable, filters.check_unknown, filters.check_needs_evidence):
        measured |= passed(filter_, HOPS).measured
    assert measured == {"solved": 1.0, "known": 0.0, "without_evidence": 0.0}


def test_an_edited_document_of_the_item_has_no_second_passage_in_the_one_it_was_made_of():
    text = PAGES["esk"].replace("12.5", "31.4")
    edited = Document("esk-edited", "esk.txt", "esk", text, text)
    said = "It lifts 31.4 tonnes."
    made = replace(LOAD, answers=("31.4 tonnes",), documents=(edited,),
                   chunks=(Chunk.of(edited, "plain", 0, len(text)),),
                   evidence=(Evidence("esk-edited", "plain", text.index(said), len(text), said),))
    assert [passed(filter_, made) for filter_ in (filters.check_spans, filters.check_unique)] == [None, None]
    beside = replace(made, chunks=(*made.chunks, replace(made.chunks[0], id="b", document="b")))
    assert passed(filters.check_unique, beside).startswith("a second passage may answer it")


@pytest.mark.parametrize(("one", "why"), [
    (ABSENT, None), (ABSENT_KOREAN, None),
    (replace(ABSENT, answers=("Ada Lindqvist",)), "a passage of the index may answer it"),
    (replace(ABSENT, answers=("barley",)), "one of its own chunks may answer it"),
    (replace(ABSENT_KOREAN, answers=("김하늘",)), "a passage of the index may answer it"),
    (replace(ABSENT, answers=("yes",)), "its answer is too common to search for"),
    (replace(ABSENT, answers=()), "it has no answer to search for")])
def test_an_unanswerable_item_is_certified_only_where_no_chunk_of_the_index_holds_its_answer(one, why):
    said = passed(filters.certify_unanswerable, one)
    assert said == why if why is None else said.startswith(why)


def test_evidence_that_was_taken_out_is_no_answer_but_may_not_stand_in_what_is_left():
    taken = replace(LOAD, answerable=False, chunks=(LIBRARY.chunks[2],))
    assert passed(filters.certify_unanswerable, taken) is None
    assert passed(filters.certify_unanswerable,
                  replace(taken, chunks=LIBRARY.chunks[:1])) == "one of its own chunks may answer it"


@pytest.mark.parametrize(("question", "answer", "why"), [
    ("How many tonnes does the crane of the Esk depot lift, then?", "12.5 tonnes",
     "it repeats another item's question"),
    ("how many tonnes does a crane of the Esk depot lift", "14 tonnes",
     "it repeats another item's question with a different answer"),
    ("에스크 은행의 최저자본금은 얼마인가요", "300억원", "it repeats another item's question with a different answer"),
    ("What can the Esk crane carry?", "12.5 tonnes", "it repeats another item's question"),  # by its vector
    ("How many tonnes does the crane of the Rosk depot lift?", "9 tonnes", None),
    ("How heavy was the wheel?", "12.5 tonnes", None), ("Who runs the Esk depot?", "Ada", None)])
def test_a_twin_is_known_by_its_words_or_its_vector_and_by_its_answer(question, answer, why):
    assert filters.duplicate_check(LIBRARY)(Item("new", question, (answer,)), SOUND) == why


def test_the_same_question_about_a_document_of_its_own_may_have_another_answer():
    own = replace(LOAD, id="new", answers=("31 tonnes",), documents=(Document("e", "e.txt", "", "", ""),))
    assert filters.duplicate_check(LIBRARY)(own, SOUND) is None


@pytest.mark.parametrize("answer", ["12.5 tonnes", "Ada Lindqvist", "a fire that nobody explained at all", "250억원"])
def test_the_whole_index_is_guarded_as_each_chunk_by_itself(answer):
    asked, gold = Question("q", "What is it?", (answer,), True), LIBRARY.chunks[1:2]
    whole = GuardedIndex(LIBRARY.chunks)
    one_by_one = [found for chunk in LIBRARY.chunks if (found := Guard(asked, gold, Thresholds(), whole).check(chunk))]
    assert list(whole.find_rejected(asked, gold)) == one_by_one != []
