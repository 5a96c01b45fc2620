"""`ragbed construct crest` with a writer whose every flaw is known."""
import json
import re

from ragbed.experiments.guests.datasets.crest import Crest
from ragbed.strategies import REFUSAL

ROWS = {"2020": "1,200 parcels", "2021": "1,577 parcels", "2022": "1,610 parcels"}
ASTER = "<h1>Aster</h1>\n<table>" + "".join(
    f"<tr><th>{year}</th><td>{sent}</td></tr>" for year, sent in ROWS.items()) + (
    "</table>\n<p>The depot’s roof was mended in May 1998. Its first parcel left in June 2003.</p>")
BIRCH = ("The Birch lighthouse (자작나무) is 41 metres high.\n\nThe Cedar lighthouse is 58 metres high.\n\n"
         "A keeper of the Birch lighthouse wrote that Paris is the capital of France, and that they mended the "
         "roof of the Aster depot in May 1998.")
SEOUL = "한빛 도서관은 1987년에 문을 열었다.\n\n한빛 도서관의 장서는 2,300권이다.\n\n" + "아침에 사람들이 온다. " * 15


def asked(question, answer, *evidence, **kinds):
    return {"question": question, "answer": answer, "evidence": list(evidence), **(kinds or {"types": ["numerical"]})}


MORE = asked("How many more parcels left the Aster depot in 2021 than in 2020?", "377", "2020 | 1,200 parcels",
             "2021 | 1,577 parcels")
YEARS = asked("How many years after its roof was mended did the first parcel leave the Aster depot?", "5 years",
              "The depot's roof was mended in May 1998.", "Its first parcel left in June 2003.", types=["temporal"])
SUM = asked("In the five years after the roof was mended no parcel left the Aster depot; how many left in 2021 and "
            "2022 together?", "3187", "2021 1,577 parcels", "2022 1,610 parcels", types=["numerical", "temporal"])
HIGHER = asked("How much higher is the Cedar lighthouse than the Birch lighthouse?", "17 metres",
               "The Birch lighthouse (자작나무) is 41 metres high.", "The Cedar lighthouse is 58 metres high.")
VOLUMES = asked("한빛 도서관의 장서는 몇 권인가?", "2,300권", "한빛 도서관의 장서는 2,300권이다.", types=["format"])
SOUND = [MORE, YEARS, SUM, HIGHER, VOLUMES]

WRONG = asked("How many parcels left the Aster depot in 2020 and 2021 together?", "2,900", *MORE["evidence"])
UNQUOTED = asked("When did the Aster depot close?", "2011", "It closed in 2011.")
POINTING = asked("Which lighthouse is the higher one in the passage?", "Cedar", *HIGHER["evidence"])
KNOWN = asked("What is the capital of France?", "Paris", "Paris is the capital of France")
FOREIGN = asked("When did the Hanbit library open?", "1987", "한빛 도서관은 1987년에 문을 열었다.")
AGAIN = asked("How much higher is the Cedar lighthouse than that of Birch?", "17 metres",
              *HIGHER["evidence"])
ELSEWHERE = asked("When was the roof of the Aster depot mended?", "May 1998", YEARS["evidence"][0], types=["temporal"])
NEEDLESS = asked("Which lighthouse is the higher one, Birch or Cedar?", "that of Cedar", *HIGHER["evidence"])
WRITTEN = {"lighthouse": ([HIGHER, POINTING, KNOWN, AGAIN, NEEDLESS], None),
           "depot": ([MORE, YEARS, WRONG, UNQUOTED, ELSEWHERE], [SUM]), "한빛": ([VOLUMES, FOREIGN], [])}
ASKED = [one for simple, joined in WRITTEN.values() for one in [*simple, *(joined or [])]]
TRUTH = {one["question"]: one["answer"] for one in ASKED} | {
    WRONG["question"]: "2,777"}
REASONS = {UNQUOTED["question"]: "spans", POINTING["question"]: "self-contained", FOREIGN["question"]: "language",
           WRONG["question"]: "solvable", KNOWN["question"]: "not known", AGAIN["question"]: "duplicate",
           NEEDLESS["question"]: "needs its evidence"}


def words(text):
    return re.sub(r"[\s|]+", "", re.sub(r"<[^>]*>", "", text)).replace("'", "’").rstrip(".")


def number_of(text, passage):
    """The number of the line that has these words; of none, one that was not shown."""
    lines = re.findall(r"^\[(\d+)\] (.*)", passage, re.MULTILINE)
    return next((int(number) for number, line in lines if words(text) in words(line)), 99)


def write(body):
    """The four turns of the conversation; its fourth fails over the lighthouses."""
    passage = body["messages"][-1]["content"] if len(body["messages"]) < 3 else next(
        one["content"] for one in body["messages"] if "<passage>" in one["content"])
    simple, joined = next(texts for name, texts in WRITTEN.items() if name in passage)
    replies = [{"information": [{"key": "all", "values": ["one"], "description": "It says all."}]},
               {"questions": [{"type": "semantic", "question": "What is it?", "answer": "one"}]},
               {"questions": simple}, {"questions": joined} if joined else "no questions"]
    turn = sum(one["role"] == "assistant" for one in body["messages"])
    reply = replies[min(turn, 3)]
    if turn > 1 and isinstance(reply, dict):
        reply = {"questions": [{**one, "evidence": [number_of(text, passage) for text in one["evidence"]]}
                               for one in reply["questions"]]}
    return json.dumps(reply, ensure_ascii=False)


def reply(body):
    shown = "\n".join(one["content"] for one in body["messages"])
    if "<passage>" in shown:
        return write(body)
    question = next(question for question in TRUTH if question in shown)
    if question == KNOWN["question"]:
        return "<Answer>Paris</Answer>"
    if question == NEEDLESS["question"] and "<documents>" in shown:
        return "<Answer>that of Cedar [1]</Answer>"
    evidence = next(one["evidence"] for one in ASKED if one["question"] == question)
    held = all(words(text) in words(shown) for text in evidence)
    return f"<Answer>{TRUTH[question]} [1]</Answer>" if held else REFUSAL


def test_every_flaw_is_lost_at_its_filter_and_the_others_run_as_the_published_set(tmp_path, serve, ragbed):
    pages = tmp_path / "pages"
    pages.mkdir()
    for name, text in {"aster.html": ASTER, "birch.txt": BIRCH, "seoul.txt": SEOUL, "none.txt": "One line."}.items():
        (pages / name).write_text(text, encoding="utf-8")
    url = f"{serve(reply).url}#m"
    counts = ragbed.json("construct", "crest", pages, "--out", tmp_path / "set", "--writer", url, "--n", "20",
                         "--tries", "16", "--set", "options.unanswerable=0.5", "--set", "retriever=dense")
    folder = tmp_path / "set"
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    lost = {row["item"]["question"]: row["lost"] for row in reversed(rows)}  # of each the first
    assert {question: lost[question] for question in REASONS} == REASONS
    assert lost[ELSEWHERE["question"]] in ("unique", "certificate")  # as it is drawn
    kept = [row["item"] for row in rows if not row["lost"]]
    assert sorted(item["question"] for item in kept) == sorted(one["question"] for one in SOUND)
    tags = {item["question"]: item["tags"] for item in kept}
    assert tags[SUM["question"]] == {"language": "en", "tier": "complex", "reasoning": "numerical, temporal"}
    assert tags[HIGHER["question"]] == {"language": "en", "tier": "simple", "reasoning": "numerical",
                                        "degraded": "simple only"}
    assert tags[VOLUMES["question"]]["language"] == "ko"
    assert counts["yield"]["kept"] == 5
    assert counts["guard"]["recall"]["mean"] == 1.0  # of answers planted in the pages
    assert list(counts["yield"]["lost"]["turns"]) == ["its passage has fewer than 200 characters"]

    # A drawn share comes without its evidence.
    questions = {question.text: question for question in Crest(path=str(folder / "crest")).load().questions}
    assert {question.answerable for question in questions.values()} == {True, False}
    for one in SOUND:
        question = questions[one["question"]]
        read = ["".join(re.sub(r"<[^>]*>|\|", "", chunk.content).split()) for chunk in question.provided]
        quotes = ["".join(text.replace("|", "").replace("'", "’").split()).rstrip(".") for text in one["evidence"]]
        holding = [all(quote in text for quote in quotes) for text in read]
        assert sum(holding) == question.answerable  # once in one rendering, or not at all
        assert [gold.chunk for gold in question.gold] == [
            chunk.id for chunk, holds in zip(question.provided, holding, strict=True) if holds]
        assert question.tags["ground"] == ("agrees",)
    assert questions[SUM["question"]].tags["difficulty_type"] == ("ComplexQA",)
    assert questions[SUM["question"]].tags["reasoning_type"] == ("numerical reasoning", "temporal reasoning")
    made = ragbed.json("run", "crest", folder / "crest", "--model", url, "--reasoning", "direct", "--judge", "lexical",
                       "--out", tmp_path / "runs")
    (cell,) = made["cells"]
    assert (cell["n"], cell["metrics"]["unified"]["mean"]) == (5, 1.0)


def test_a_writer_of_a_small_context_is_given_small_passages_and_a_failed_turn_says_why(tmp_path, serve, ragbed):
    page = tmp_path / "long.txt"
    page.write_text(" ".join(f"Depot {number} sent {number * 7} parcels." for number in range(300)))
    server = serve(lambda body: "I would rather not.")
    made = ragbed.json("construct", "crest", page, "--out", tmp_path / "set", "--writer", f"{server.url}#m", "--n", "2",
                       "--tries", "4", "--set", "options.most=2", "--set",
                       "chunker={kind: crest, smallest: 200, largest: 300}")
    passages = [re.search("<passage>\n(.*)\n</passage>", body["messages"][0]["content"], re.DOTALL)[1]
                for body, _ in server.requests]
    assert len(passages) == 8  # each is asked again with the reason
    assert max(map(len, passages)) <= 2 * 300 + len("\n\n")
    assert made["yield"]["lost"]["turns"] == {"the writer's reply is invalid: it is not a JSON object": 4}
    assert made["yield"]["kept"] == 0
