"""The claims that docs/findings.md tests again: their questions, their settings, and their tables."""
import json

import findings
import pytest
import yaml
from conversion import Draw
from convert import convert

from ragbed.experiments import BENCHMARKS
from ragbed.experiments.formatting import estimate
from ragbed.experiments.metrics import METRICS, family_of

KNOWN = yaml.safe_load(findings.FILE.read_text(encoding="utf-8"))


def loaded(target, source, path, out):
    convert(target, [f"{source}={path}"], Draw(), out)
    return BENCHMARKS[target].model_validate({"path": str(out)}).load().questions


def test_a_table_becomes_documents_that_say_the_same_and_an_answer_that_can_be_counted(tmp_path):
    rows = [["ida", "3", "oak"], ["otto", "11", "elm"], ["nell", "7", "oak"], ["ruth", "2", "ash"],
            ["sven", "5", "yew"]]
    path = tmp_path / "tables.json"
    path.write_text(json.dumps([{"table_id": "1.csv", "title": "planters", "header": ["name", "trees", "kind"],
                                 "rows": rows}, {"table_id": "2.csv", "title": "few", "header": ["name"],
                                                 "rows": rows[:4]}]), encoding="utf-8")
    question, = loaded("mdbench", "tabfact", path, tmp_path / "out")
    of = "Of the entries on planters: "
    assert {question.text: question.answers[0]}.items() <= {
        f"{of}which name has the highest trees?": "otto", f"{of}which name has the lowest trees?": "ruth",
        f"{of}what is the kind of the entry with the highest trees?": "elm",
        f"{of}what is the kind of the entry with the lowest trees?": "ash",
        f"{of}in how many of them is the kind oak?": "2"}.items()
    assert question.provided[1].content == "The name is otto, the trees is 11, and the kind is elm."
    assert question.table.content.splitlines()[3] == "| otto | 11 | elm |"


def test_an_edited_question_has_another_answer_wherever_the_first_stood(tmp_path):
    def row(number, answer):
        said = f"Marn has its court in {answer}. {answer.upper()} is small; {answer}ville is not."
        texts = ("Esk lies in Marn.", said, "Nothing.")
        return {"id": f"2hop__{number}", "question": "Where is the court of the county of Esk?", "answer": answer,
                "answer_aliases": [],
                "paragraphs": [{"idx": at, "title": f"{number}-{at}", "paragraph_text": text, "is_supporting": at < 2}
                               for at, text in enumerate(texts)],
                "question_decomposition": [{"question": "Esk >> county", "answer": "Marn"},
                                           {"question": "#1 >> court", "answer": answer}]}

    path = tmp_path / "musique.jsonl"
    path.write_text("".join(json.dumps(row(*one)) + "\n" for one in ((1, "Selk"), (2, "Lund"))), encoding="utf-8")
    convert("mrke", [f"edited={path}"], Draw(), tmp_path / "out")
    questions = BENCHMARKS["mrke"].model_validate({"path": str(tmp_path / "out"), "versions": "both"}).load().questions
    original, edited = questions[:2]
    assert (original.answers, edited.answers, edited.sub_answers) == (("Selk",), ("Lund",), ("Marn", "Lund"))
    assert edited.provided[1].content == "1-1\nMarn has its court in Lund. Lund is small; Selkville is not."
    assert len(edited.provided) == 2
    assert original.provided[0] == edited.provided[0]


def test_true_and_changed_passages_have_the_same_question_and_options(tmp_path):
    path = tmp_path / "en_fact.json"
    path.write_text("".join(json.dumps({
        "id": number, "query": f"Who won {number}?", "answer": f"Ida {name}", "fakeanswer": f"Otto {name}",
        "positive": [f"Ida {name} won."], "positive_wrong": [f"Otto {name} won."]}) + "\n"
        for number, name in enumerate(("A", "B", "C"))), encoding="utf-8")
    false = loaded("mrceval", "rgb", path, tmp_path / "false")
    true = loaded("mrceval", "rgb_true", path, tmp_path / "true")
    for one, other in zip(false, true, strict=True):
        assert (one.id, one.text, one.options) == (other.id, other.text, other.options)
        said, right = dict(one.options)[one.answers[0]], dict(one.options)[other.answers[0]]
        assert said.startswith("Otto")
        assert right == said.replace("Otto", "Ida")


@pytest.mark.parametrize("name", KNOWN["runs"])
def test_the_settings_of_every_run_are_valid(name):
    assert findings.settings_of(name, KNOWN["runs"][name], "http://127.0.0.1:1/v1#none").name == name


@pytest.mark.parametrize("claim", KNOWN["claims"], ids=lambda claim: claim["claim"])
def test_every_claim_is_of_runs_and_metrics_that_there_are(claim):
    for side in (claim["before"], *claim["after"]):
        assert side.get("run", claim["before"]["run"]) in KNOWN["runs"]
        assert family_of(side.get("metric", claim["metric"])) in METRICS


@pytest.mark.slow
def test_the_table_of_refusals_is_what_the_recorded_run_gives(ragbed, tmp_path):
    """After a change of scoring, copy the printed lines to docs/findings.md, and run bench/findings.py for the claims.
    """
    root = findings.FILE.parents[1]
    recorded = root / "agents/recordings/qwen2.5-coder-1.5b-instruct.cassette.jsonl.gz"
    made = ragbed.json("run", "--replay", recorded, "--out", tmp_path)
    named = {"direct": "direct", "chain_of_thought": "chain of thought", "chain_of_draft": "drafts",
             "plan_and_solve": "plan", "least_to_most": "least-to-most"}
    lines = []
    for cell in made["cells"][:5]:
        shown = (estimate(*(cell["metrics"][name][part] for part in ("mean", "low", "high")))
                 for name in ("refusal_accuracy", "unified", "wrong"))
        tokens = round(cell["usage"]["completion_tokens"] / cell["n"])
        lines.append(" | ".join((f"| {named[cell['reasoning']]}", *shown, f"{tokens} |")))
    print("\n".join(lines))
    assert "\n".join(lines) in (root / "docs/findings.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_table_of_twins_is_what_the_recorded_run_gives(ragbed, tmp_path):
    root = findings.FILE.parents[1]
    made = ragbed.json("run", "--replay", root / "docs/findings/agents.cassette.jsonl.gz", "--out", tmp_path)
    view, = (one for one in made["views"] if one["name"] == "twins")
    forms = ("z.2f", "z.2f", "+z.2f")
    lines = [" | ".join((f"| Qwen 1.5B | `{cell}`", str(pairs), *(
        estimate(figure["mean"], figure["low"], figure["high"], form)
        for figure, form in zip(figures, forms, strict=True)), "")).strip() for cell, pairs, *figures in view["rows"]]
    print("\n".join(lines))
    assert "\n".join(lines) in (root / "docs/findings.md").read_text(encoding="utf-8")
