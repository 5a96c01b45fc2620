"""Refusals in any words: the error rates on labelled replies, what is an answer nevertheless, and who else decides."""
import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from each_case import each
from growth import grows_linearly
from stored import result

from ragbed.experiments import Question, Scheme
from ragbed.experiments.guests.refusals.wording import refusal_for
from ragbed.experiments.metrics import score_result
from ragbed.strategies import REASONING, REFUSAL, RETRIEVAL, Draft, Reply, Task, is_refusal
from ragbed.strategies.reading import SENTENCES, begins_with_refusal, read_refusal

REPLIES = [json.loads(line) for line in (Path(__file__).parent / "replies.jsonl").read_text().splitlines()]


def wrong(half, key):
    """Errors and replies of a half by the values of a field."""
    rows = [row for row in REPLIES if row["half"] == half]
    errors = Counter(row[key] for row in rows if is_refusal(row["reply"]) != (row["kind"] == "refusal"))
    return {value: (errors[value], count) for value, count in Counter(row[key] for row in rows).items()}


def test_the_half_by_which_the_rules_were_written_is_read_without_an_error():
    assert sum(errors for errors, _ in wrong("rules", "kind").values()) == 0


def test_of_the_half_kept_aside_four_refusals_are_missed_and_one_answer_is_taken_for_one():
    assert wrong("test", "kind") == {
        "refusal": (4, 40), "partial answer": (0, 9), "answer with words of a refusal": (0, 13),
        "negative answer": (1, 7), "plain answer": (0, 6)}
    assert wrong("test", "language") == {"en": (1, 22), "ko": (1, 11), "de": (1, 9), "zh": (0, 8), "fr": (0, 7),
                                         "es": (2, 7), "ja": (0, 5), "ru": (0, 3), "it": (0, 1), "pt": (0, 2)}


@each("text", [
    "The answer to this question is not found in the documents provided.", "Answer: not in the documents",
    "The context only mentions the founding year, not the founder.", "Unknown [1]", "Not enough information [1]",
    "There is no information about the sirens in the given documents.", "[1] 문서에 답이 없어요.",
    "Document [1] describes the magazine, and document [2] the song. Neither names an editor.",
    f"{REFUSAL} Cite document [1].", f"{REFUSAL}\n\nDocument [1] states that Wellington is a capital.",
    "Aus den vorliegenden Dokumenten geht nicht hervor, wer der Trainer ist.",
    "文書にはコーチの名前は記載されていません。",
    "I'm sorry, but I can't find that in the documents. If you can share more, I'd be happy to help!"])
def test_a_reply_without_an_answer_refuses_in_any_words(text):
    assert is_refusal(text)


@each("text", [
    "While the documents don't give an exact figure, they indicate that attendance was about 3,000 [2].",
    "The documents do not say who his first coach was; his second was Ivan Petr [1].",
    f"{REFUSAL} However, [2] suggests that it was in 1984.",
    "The report was unable to determine the cause of the crash [4].", "It is unknown who wrote it [3].",
    'The name means "I don\'t know" in the local language [1].', "Unlike the first edition, the second has no index.",
    "If the documents are not provided within 30 days, the claim lapses [2].", "No", "None", "No. It has none [2].",
    "Applicants who cannot provide the documents must apply in person [1].", "Unknown Pleasures [1]", "", "¿?", "§"])
def test_a_reply_that_answers_in_part_or_reports_such_words_is_an_answer(text):
    assert not is_refusal(text)


def test_a_refusal_in_other_words_has_a_note_and_a_field_of_the_schema_none():
    assert Draft.from_reply(Reply("I don't know.")).notes == ("reworded_refusal",)
    assert Draft.from_reply(Reply(REFUSAL)).notes == ()
    said = {"refused": True, "answer": "The documents do not say.", "citations": []}
    assert Draft.from_reply(Reply("", parsed=said)).notes == ()


def test_as_published_a_refusal_in_other_words_stays_an_answer():
    scheme = Scheme(groups=("squad", "overlap"), rubric=None, columns=())
    question = Question("q", "Who?", ("I don't know",), True)
    one = result("c", outcome="refused", refused=True, text="I don't know.", notes=("reworded_refusal",))
    corrected, published = (score_result(one, question, scheme, scoring, "grounded", True, False).scores
                            for scoring in ("corrected", "as-published"))
    assert (corrected["em"], published["em"], published["squad_em"]) == (0.0, 1.0, 1.0)


def test_reading_takes_linear_time():
    for piece in ("the documents do not ", "no no not ", "'a ", "문서에 없", "文件没", "§ ", "documents the "):
        grows_linearly(lambda n, piece=piece: read_refusal.__wrapped__(piece * n), 2_000)


SAID = {0: "The documents do not give a number, so nobody lives there [1].", 1: "I don't know.",
        2: "222 people [1]; the documents do not name the mayor.", 3: "It has no people, not even one.",
        4: "not specified", 5: "555 people [1]"}


def decided(body):
    last = body["messages"][-1]["content"]
    if "<reply>" in last:
        return "Refusal" if "not even one" in last else "**Answer**" if "222" in last else "Hm."
    if "Say one word" in last:
        return "I cannot tell."
    return f"<Answer>{SAID[int(last.rpartition('in town ')[2][0])]}</Answer>"


def test_a_model_decides_what_the_rules_leave_open_and_a_replay_decides_the_same(serve, town, ragbed):
    town.write([town.row(number, **({"answer": "not specified"} if number == 4 else {})) for number in range(6)])
    server = serve(decided)
    config = town.config(server.url, rules=["grounded", "open"],
                         refusals={"model": f"{server.url}#judge", "max_tokens": 99})
    run = ragbed.json("run", config)
    grounded, other = (cell["id"] for cell in run["cells"])
    results = [one["result"] for one in town.records()]
    found = {one["question"]: (one["outcome"], one["notes"]) for one in results if one["cell"] == grounded}
    unread, asked = "refusal_by_model:unreadable twice", "refusal_by_model:answer"
    assert {id[-1]: one for id, one in found.items()} == {
        "0": ("answered", (unread,)), "1": ("refused", ("reworded_refusal",)), "2": ("answered", (asked,)),
        "3": ("refused", ("refusal_by_model:refusal", "reworded_refusal")), "4": ("answered", ()),
        "5": ("answered", ())}
    assert {note for one in results if one["cell"] == other for note in one["notes"]} == {"reworded_refusal"}
    assert [cell["judge_usage"]["calls"] for cell in run["cells"]] == [4, 0]  # two for the reply that cannot be read
    assert [note for note in run["notes"] if "may be refusals" in note] == [
        f"{server.url}#judge read 3 replies that may be refusals. It found 1 refusals and 1 answers; 1 without a "
        "readable decision count as answers."]
    assert {body.get("max_tokens", body.get("max_completion_tokens")) for body, _ in server.requests
            if body["model"] == "judge"} == {99}
    sent, before = len(server.requests), town.hashes()
    assert ragbed("run", config, "--journal", "replay")[0] == 0
    assert (len(server.requests), town.hashes()) == (sent, before)
    assert ragbed.json("rescore", town.run)["cells"][0]["outcomes"] == run["cells"][0]["outcomes"]


@pytest.mark.parametrize("settings", [
    {"refusals": {"model": "m"}, "rules": "open"}, {"refusals": {"model": "m"}, "scoring": "as-published"},
    {"languages": "auto", "rules": "reading"}, {"languages": ["english", "auto"], "scoring": "as-published"}])
def test_a_setting_about_refusals_that_cannot_act_is_rejected(settings, town, ragbed):
    ragbed.refuses("run", town.config("http://127.0.0.1:9", **settings), says=[
        f"{next(iter(settings))}: it acts only in corrected scoring and with the rules grounded"])


QUESTIONS = {"german": "Wer ist Bürgermeister von Wellington?", "korean": "웰링턴의 시장은 누구인가요?",
             "chinese": "惠灵顿的市长是谁？", "french": "Qui est le maire ?",
             "spanish": "¿Cuáles fueron los ingresos en 2023?", "japanese": "市長は誰ですか。",
             "russian": "Кто построил храм?", "italian": "Qual era il fatturato nel 2023?",
             "portuguese": "Qual foi a receita em 2023?", "english": "What is the fee?"}


def test_prompts_state_the_refusal_in_the_language_of_the_question_and_it_is_read():
    assert {language: refusal_for(question) for language, question in QUESTIONS.items()} == dict(SENTENCES)
    for language, question in QUESTIONS.items():
        task = Task("q", question, RETRIEVAL["none"], language="auto")
        prompt = next(REASONING["direct"](task)).messages[-1].content
        assert f'"{SENTENCES[language]}"' in prompt
        assert begins_with_refusal(SENTENCES[language])
        assert is_refusal(SENTENCES[language])


def test_the_language_is_a_factor_of_cells_whose_prompts_offer_a_refusal(serve, town, ragbed):
    server = serve(lambda body: "No puedo responder a la pregunta con los documentos.")
    town.write([town.row(number, query=f"¿Cuántas personas viven en la ciudad {number}?") for number in range(6)])
    run = ragbed.json("run", town.config(server.url, language=["english", "auto"], rules=["grounded", "open"]))
    assert [(cell["rules"], cell.get("language")) for cell in run["cells"]] == [
        ("grounded", "english"), ("grounded", "auto"), ("open", None)]
    stated = Counter(SENTENCES["spanish"] in body["messages"][-1]["content"] for body, _ in server.requests)
    assert stated == {True: 6, False: 12}
    assert [cell["outcomes"]["refused"] for cell in run["cells"]] == [6, 6, 6]
    assert yaml.safe_load((town.run / "config.yaml").read_text())["languages"] == ["english", "auto"]
