"""Literal and paraphrased twins of computed questions: grep finds the first and none of the second."""
import json
from pathlib import Path

import pytest
from exact_agent import reply, words_of

BUNDLED = Path(__file__).parents[3] / "experiments" / "data" / "twins"
PAGES = {file.name: file.read_text(encoding="utf-8") for file in sorted((BUNDLED / "pages").iterdir())}


def construct(*more, pages=BUNDLED / "pages", synonyms=BUNDLED / "synonyms.json"):
    return ("construct", "computed", pages, "--set", "options.twins=true", "--set", f"options.synonyms={synonyms}",
            *more)


def items(folder):
    return [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def built(ragbed, kept):
    """The folder of a set of 30 pairs of look-ups over the bundled pages."""
    if not kept.exists():
        ragbed.json(*construct("--out", kept, "--n", "60", "--set", 'options.operations=["look-up"]'))
    return kept


def grep(word):
    """The pages with lines that have this text, in any case, with these lines."""
    found = {name: [line for line in text.splitlines() if word.casefold() in line.casefold()]
             for name, text in PAGES.items()}
    return {name: lines for name, lines in found.items() if lines}


def answer_by_grep(question):
    """What an exact agent with grep answers: it greps for what the question quotes, or else for all of its words, and
    reads the value where the line of a name meets the column of a field."""
    words = words_of(question)
    hits = [grep(word) for word in words]
    for page in set.intersection(*map(set, hits)):
        lines = {line for found in hits for line in found[page]}
        header, *rows = ([cell.strip() for cell in line.strip("| ").split("|")]
                         for line in PAGES[page].splitlines() if line in lines and line.startswith("|"))
        for row in rows:
            for place, field in enumerate(header):
                if row[0] in words and field in words and place:
                    return row[place]
    return None


def test_grep_finds_every_literal_question_and_no_paraphrased_one(built):
    found = items(built)
    assert len(found) == 60
    for item in found:
        literal = item["tags"]["wording"] == "literal"
        assert answer_by_grep(item["question"]) == (item["answers"][0] if literal else None), item["question"]
        if not literal:
            gold = {one["document"] for one in item["gold_documents"]}
            assert [word for word in words_of(item["question"]) if gold & set(grep(word))] == [], item["question"]


def test_twins_share_answer_evidence_and_documents(built):
    first, second, *_ = [json.loads(line) for line in (built / "computed" / "computed.jsonl").read_text().splitlines()]
    assert (first["wording"], second["wording"], second["id"]) == (
        "literal", "paraphrased", f"{first['id']}-paraphrased")
    assert first["pair"] == second["pair"] == first["id"]
    assert first["documents"] == second["documents"]
    assert first["worlds"] == second["worlds"]
    assert first["question"] != second["question"]


def test_a_question_with_a_word_that_has_no_other_is_left_out_with_its_reason(ragbed, tmp_path):
    known = json.loads((BUNDLED / "synonyms.json").read_text(encoding="utf-8"))
    for name, other, reason in (("a", {}, "options.synonyms has no other word for 'trade'"),
                                ("b", {"trade": "Doctors' work"},
                                 "its other wording has a word of its document, 'doctor'")):
        (tmp_path / f"{name}.json").write_text(json.dumps({
            old: new for old, new in known.items() if old != "trade"} | other))
        status, out, _ = ragbed(*construct(
            "--out", tmp_path / name, "--n", "2", "--tries", "1", "--set", 'options.operations=["arg-max"]',
            pages=BUNDLED / "pages" / "wages-by-trade.md", synonyms=tmp_path / f"{name}.json"))
        assert (status, reason in " ".join(out.split())) == (1, True), out


def test_a_writer_paraphrases_and_its_words_are_checked_and_read_back(ragbed, serve, tmp_path):
    """The writer finds other words for the doctor, keeps a word of the document for the cook, and misreads the rest."""
    words = {"doctor": "physician", "cook": "chef with a good salary", "tailor": "dressmaker"}

    def reply(body):
        question = body["messages"][-1]["content"].partition("<question>\n")[2].partition("\n</question>")[0]
        if "<fields>" not in body["messages"][-1]["content"]:
            name = next(name for name in words if name in question)
            return json.dumps({"question": f"How much does a {words[name]} earn?"})
        names = [name for name, other in words.items() if other in question]
        return json.dumps({"names": names, "fields": ["salary"], "asked": "count" if "tailor" in names else "value"})

    page = tmp_path / "wages.md"
    page.write_text("# Wages\n\n| trade | salary |\n| --- | --- |\n" + "".join(
        f"| {name} | {amount} |\n" for name, amount in zip(words, (12, 9, 7), strict=True)))
    _, out, _ = ragbed("construct", "computed", page, "--n", "6", "--set", "options.twins=true", "--set",
                       'options.operations=["look-up"]', "--writer", f"{serve(reply).url}#m", "--out", tmp_path / "set")
    assert [(one["tags"]["wording"], one["question"].count("doctor"), one["answers"]) for one in items(tmp_path / "set")
            ] == [("literal", 1, ["12"]), ("paraphrased", 0, ["12"])]
    assert "its other wording has a word of its document, 'salary'" in " ".join(out.split())
    assert "reads back as asking for the count, not for the value" in " ".join(out.split())


def test_twins_need_exactly_one_source_of_other_words(ragbed, tmp_path):
    pages = ("construct", "computed", BUNDLED / "pages", "--out", tmp_path / "set", "--set")
    ragbed.refuses(*pages, "options.twins=true", says=["give a --writer or options.synonyms=FILE.json, but not both"])
    ragbed.refuses(*pages, f"options.synonyms={BUNDLED / 'synonyms.json'}", says=["set twins=true"])
    ragbed.refuses(*construct("--out", tmp_path / "set", synonyms=tmp_path / "none.json"), says=["No such file"])


PERFECT = """
from ragbed.retrieval import Hit

class Perfect:
    def __init__(self, chunks, answers):
        self.chunks, self.answers = chunks, answers

    def search(self, queries, k):
        return [[Hit(chunk, 1.0, 1, "perfect") for chunk in self.chunks if self.answers[query] in chunk.content]
                for query in queries]
"""


@pytest.mark.slow
def test_agents_with_grep_and_with_a_perfect_retriever_differ_as_known_beforehand(ragbed, serve, built, tmp_path):
    answers = {item["question"]: item["answers"][0] for item in items(built)}
    (tmp_path / "perfect.py").write_text(PERFECT, encoding="utf-8")
    agents = [{"kind": "agent", "tools": [tool], "protocol": "text"} for tool in ("grep", "search")]
    own = {"kind": "jsonl", "path": str(built / "questions.jsonl"), "corpus": str(BUNDLED / "pages")}
    model = f"{serve(lambda body: reply(body, answers)).url}#m"
    settings = {"benchmark": own, "models": model, "reasoning": agents, "conditions": "retrieved", "name": "twins",
                "retriever": {"kind": "external", "factory": f"{tmp_path / 'perfect.py'}:Perfect",
                              "options": {"answers": answers}}, "out": str(tmp_path / "runs")}
    (tmp_path / "run.yaml").write_text(json.dumps(settings), encoding="utf-8")
    views = {view["name"]: view for view in ragbed.json("run", tmp_path / "run.yaml")["views"]}
    assert [(pairs, *(figure["mean"] for figure in figures)) for _, pairs, *figures in views["twins"]["rows"]] == [
        (30, 1.0, 0.0, -1.0), (30, 1.0, 1.0, 0.0)]
    tested, = views["twins:compared"]["rows"]
    row = dict(zip(views["twins:compared"]["header"], tested, strict=True))
    assert (row["n"], row["before"]["mean"], row["after"]["mean"], row["difference"]["mean"], row["verdict"]) == (
        30, -1.0, 0.0, 1.0, "significantly higher")
