"""What a run's figures come with: who judged, what it cost, what they do not say."""
import json

from agents import catalogue
from experiments.analysis.notes import on_models


def test_another_judge_model_is_not_mixed_into_a_run(serve, town, ragbed):
    answering, grading = serve(town.reply), serve(lambda _: "Grade: Correct\nError type: None")
    path = town.config(answering.url, judge=f"{grading.url}#judge")
    assert ragbed("run", path)[0] == 0
    manifest = json.loads((town.run / "manifest.json").read_text())
    assert manifest["models"] == {f"{answering.url}#m": "m", f"{grading.url}#judge": "judge"}
    manifest["models"][f"{grading.url}#judge"] = "sha256:other"
    (town.run / "manifest.json").write_text(json.dumps(manifest))
    ragbed.refuses("run", path, says=["another model under the name", "#judge", "--fresh"])


def test_a_judge_that_fails_is_told_of_and_what_it_made_is_counted(serve, town, ragbed):
    answering, grading = serve(lambda _: "<Answer>7 [1]</Answer>"), serve(lambda _: {"status": 400})
    status, out, err = ragbed("run", town.config(answering.url, judge=f"{grading.url}#judge"))
    assert status == 0
    assert "5 of 5 answers are unjudged: call failed: http_400 (5)" in out
    assert " unjudged " in next(line for line in out.splitlines() if " outcomes " in line)
    assert f"The judge {grading.url}#judge made 5 calls with 0 tokens" in " ".join(out.split())
    assert "6 records made now, 11 calls sent and 0 from the journal, paid now an unknown price" in err


def test_calls_that_failed_are_counted(serve, town, ragbed):
    server = serve(lambda _: {"status": 400})
    (cell,) = json.loads(ragbed("run", town.config(server.url), "--json")[1])["cells"]
    assert (cell["outcomes"]["error"], cell["usage"]["calls"]) == (6, 6)


def test_the_rules_that_offer_no_refusal_are_named(serve, town, ragbed):
    run = json.loads(ragbed("run", town.config(serve(town.reply).url, rules=["grounded", "open"]), "--json")[1])
    scored = {cell["rules"]: cell["metrics"]["refusal_accuracy"]["n"] for cell in run["cells"]}
    assert scored == {"grounded": 1, "open": 0}
    assert any(note.startswith("Under the rules open prompts offer no refusal") for note in run["notes"])
    own = town.own({"id": "1", "question": "Who?", "answer": "Ada"})
    path = town.config(serve(town.reply).url, name="answerable", rules=["open"], benchmark=own,
                       conditions="closed-book")
    assert not any("offer no refusal" in note for note in json.loads(ragbed("run", path, "--json")[1])["notes"])
    assert "nothing was left to do" in ragbed("run", path)[2]


def test_a_run_of_one_cell_says_that_its_questions_are_over_few_documents(serve, town, ragbed):
    own = town.own(*({"id": str(at), "question": f"Who {at}?", "answer": "Ada", "gold_documents": [f"d{at % 2}.txt"]}
                     for at in range(4)))
    made = town.config(serve(town.reply).url, benchmark=own, conditions="closed-book")
    run = json.loads(ragbed("run", made, "--json")[1])
    assert any("too few documents to draw documents" in note for note in run["notes"])


def test_the_small_model_is_told_of_under_any_name(tmp_path):
    entry = catalogue.entry_named(catalogue.DEFAULT)
    assert len(on_models(["SmolLM2-135M"])) == 1
    assert on_models(["http://127.0.0.1:9/v1#smollm2-135m"]) == []
    path = catalogue.find(entry)
    if path is not None:
        (tmp_path / "mine.gguf").symlink_to(path)
        assert on_models([f"gguf:{tmp_path / 'mine.gguf'}"])[0].startswith("gguf:")


def test_the_lexical_judge_stands_at_all_its_columns(serve, town, ragbed):
    out = ragbed("run", town.config(serve(town.reply).url))[1]
    assert out[:out.index("\ndirect")].rpartition("judge lexical")[2].count("(lexical)") == 2
