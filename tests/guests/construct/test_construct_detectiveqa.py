"""`ragbed construct detectiveqa` with a writer whose every flaw is known."""
import json
import re
from dataclasses import dataclass, field

import pytest

from ragbed.experiments.guests.datasets.detectiveqa import DetectiveQa

STORY = """The lamp of the {place} lighthouse went out in the night of the third of May.

Ida, who keeps the {place} lighthouse, slept at her sister's that night.

Otto, the mate of {place}, had fresh oil on his left sleeve
in the morning.

Nell, the cook of {place}, had heard a cat on the stairs.

The oil of {place} stands behind a door to which Otto has the only key.

A gull lay dead on the gallery of {place}.

The glass of the {place} lamp was whole, and its wick was dry.

Rain beat upon {place} from nine until the morning.

The inspector went up the stairs of {place} twice.

"It was Otto who put out the lamp of {place}," the inspector said.

"And no wind did it: the lamp of {place} was put out from within," she said.

Otto of {place} nodded."""
OIL, KEY = "had fresh oil on his left sleeve in the morning", "to which Otto has the only key"
GLASS, RAIN, GULL = "lamp was whole", "from nine until the morning", "A gull lay dead"
OTTO, WITHIN = '"It was Otto who put out the lamp', "And no wind did it"


@dataclass
class Case:
    """The writer's question about one conclusion, and the filter that must reject it; none if it is sound."""

    filter_: str
    question: str
    clues: tuple[str, ...] = (OIL, KEY)
    answer: str = "Otto"
    wrong: tuple[str, ...] = ("Ida", "Nell", "the inspector")
    sentence: str = OTTO
    inferred: int = 2
    truth: str = ""  # the right answer where it is another
    needed: tuple[str, ...] = field(default=("fresh oil", "only key"))


CASES = {
    "Ostra": [
        Case("", "Who put out the lamp of the Ostra lighthouse?"),
        Case("", "How did the lamp of Ostra go out?", (GLASS, RAIN), "it was put out from within",
             ("the wind blew it out", "its oil ran out", "a gull broke it"), WITHIN, needed=("was whole", "Rain beat")),
        Case("duplicate", "Who was it that put out the lamp of the Ostra lighthouse?"),
        Case("spans", "Whose boat landed at Ostra?", (OIL, "A boat landed in the dark")),
        Case("complete", "Who nodded at the inspector of Ostra?", (OIL, KEY, "Otto of Ostra nodded."))],
    "Vestra": [
        Case("complete", "Who had a key of Vestra?", inferred=0),
        Case("complete", "Who lied to Vestra's inspector?", sentence="Otto lied to all of us"),
        Case("options", "Who dimmed the lamp of Vestra?", wrong=("Ida", "Nell", "nell.")),
        Case("options", "Did Otto or Ida put out the Vestra lamp?"),
        Case("self-contained", "Who put out the lamp in the passage?")],
    "Nordra": [
        Case("solvable", "Who stole the oil of Nordra?", truth="Nell"),
        Case("not known", "Who went up the stairs of Nordra?", needed=()),
        Case("reasoned", "Who alone could reach the oil of Nordra?", needed=("only key",)),
        Case("", "What tells that Otto put out the Nordra lamp?", (OIL, GULL), "his sleeve and a gull",
             ("his shoes and a cat", "his hat and a rope", "his watch and a bell"), needed=("fresh oil", "lay dead"))]}
EVERY = [(place, case) for place, cases in CASES.items() for case in cases]


def number_of(words, shown):
    """The number of the shown paragraph that has these words; of none, one that was not shown."""
    lines = re.findall(r"^\[(\d+)\] (.*)", shown, re.MULTILINE)
    return next((int(number) for number, text in lines if words in text), 99)


def deduction(case, shown):
    steps = [{"paragraph": number_of(clue, shown), "step": f"It is a clue: {clue}."} for clue in case.clues]
    steps += [{"paragraph": -1, "step": f"Inference {number} follows."} for number in range(case.inferred)]
    return {"conclusion": case.question, "paragraph": number_of(case.sentence, shown), "steps": steps}


def reply(body):
    shown = body["messages"][-1]["content"]
    if "<conclusion>" in shown:
        case = next(case for _, case in EVERY if f"<conclusion>\n{case.question}\n" in shown)
        return json.dumps({"question": case.question, "answer": case.answer, "wrong": case.wrong})
    if "conclusions that the text itself reaches" in shown:
        place = next(place for place in CASES if place in shown)
        return json.dumps({"conclusions": [deduction(case, shown) for case in CASES[place]]})
    if "summaries of parts" in shown:
        clues = [number_of("only key", shown), 99, number_of("sleeve", shown)]
        return json.dumps({"summary": "It is dark.", "clues": clues})
    if "<part>" in shown:
        clues = re.findall(r"^\[(\d+)\].*(?:sleeve|only key|whole)", shown, re.MULTILINE)
        return json.dumps({"summary": "It is dark there. " * 6, "clues": [*map(int, clues), 99]})
    case = next(case for _, case in EVERY if case.question in shown)
    text = (case.truth or case.answer) if all(clue in shown for clue in case.needed) else None
    letter = re.search(rf"^([A-D])\. {re.escape(text)}$", shown, re.MULTILINE)[1] if text else "A"
    return f"<Answer>{letter}</Answer>"


@pytest.fixture
def built(tmp_path, serve, ragbed):
    """Builds a set of the stories of these places; returns its folder and the rows of its items."""
    def build(*places, text=STORY, **options):
        pages = tmp_path / "pages"
        pages.mkdir()
        for place in places:
            (pages / f"{place}.txt").write_text(text.format(place=place), encoding="utf-8")
        server = serve(reply)
        others = [word for name, value in options.items() for word in ("--set", f"options.{name}={value}")]
        ragbed.json("construct", "detectiveqa", pages, "--out", tmp_path / "set", "--writer", f"{server.url}#m",
                    "--n", "20", *others)
        lines = (tmp_path / "set/items.jsonl").read_text(encoding="utf-8").splitlines()
        return tmp_path / "set", [json.loads(line) for line in lines], server

    return build


def test_every_flaw_is_lost_at_its_filter_and_texts_end_before_the_conclusion(built, ragbed, tmp_path):
    folder, rows, server = built(*CASES)
    assert {row["item"]["question"]: row["lost"] for row in rows} == {case.question: case.filter_ for _, case in EVERY}
    questions = {one.text: one for one in DetectiveQa(path=str(folder / "detectiveqa")).load().questions}
    assert len(questions) == 3
    who = questions["Who put out the lamp of the Ostra lighthouse?"]
    assert dict(who.options)[who.answers[0]] == "Otto"
    assert [chunk.content for chunk in who.pool if chunk.id in {gold.chunk for gold in who.gold}] == [
        "Otto, the mate of Ostra, had fresh oil on his left sleeve in the morning.",
        "The oil of Ostra stands behind a door to which Otto has the only key."]
    assert who.whole[0].content.endswith("went up the stairs of Ostra twice.")
    assert (who.about, who.tags["clues"]) == ("Ostra.txt", ("before",))
    notes = json.loads((folder / "detectiveqa/annotations.json").read_text(encoding="utf-8"))
    positions = {one["question"]: (one["clue_position"], one["answer_position"])
                 for novel in notes for one in novel["questions"]}
    assert positions[who.text] == ([3, 5, -1, -1], 10)
    assert positions["How did the lamp of Ostra go out?"] == ([7, 8, -1, -1], 11)

    made = ragbed.json("run", "detectiveqa", folder / "detectiveqa", "--model", f"{server.url}#m", "--reasoning",
                       "direct", "--condition", "full", "--judge", "lexical", "--out", tmp_path / "runs")
    assert [(cell["n"], cell["metrics"]["accuracy"]["mean"]) for cell in made["cells"]] == [(3, 1.0)]


def test_a_long_text_is_read_by_section_and_its_notes_are_merged(built):
    _, rows, server = built("Ostra", section=500, ending=0.2)
    assert {row["item"]["tags"]["sections read"] for row in rows} == {"2 of 2"}
    asked = [body["messages"][-1]["content"] for body, _ in server.requests]
    merged, = {text for text in asked if "summaries of parts" in text}
    assert "[99]" not in merged
    last, = {text for text in asked if "conclusions that the text itself reaches" in text}
    schema = next(body["response_format"]["json_schema"]["schema"] for body, _ in server.requests
                  if body["messages"][-1]["content"] == last)
    stated = schema["properties"]["conclusions"]["items"]["properties"]["paragraph"]
    assert (stated["minimum"], stated["maximum"]) == (1, 12)
    assert "It is dark.\n</summary>" in last
    assert OIL.split(" on ")[0] in last.partition("<part>")[0]
    assert OIL.split(" on ")[0] not in last.partition("<part>")[2]
    assert [(row["item"]["question"], row["lost"]) for row in rows[:2]] == [
        ("Who put out the lamp of the Ostra lighthouse?", ""), ("How did the lamp of Ostra go out?", "spans")]


def test_a_text_too_short_for_clues_and_a_conclusion_asks_nothing_and_says_so(built):
    _, rows, server = built("Ostra", text="{place} was dark.")
    assert [(row["lost"], row["why"]) for row in rows] == [("reading", "it has fewer than 10 paragraphs")]
    assert server.requests == []
