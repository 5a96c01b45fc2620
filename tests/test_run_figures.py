"""What a run's figures come with: who judged, what it cost, prices that the settings give."""
import json

import pytest
from pydantic import ValidationError

from ragbed.agents import ModelSettings, Price, open_model
from ragbed.agents.model_settings import DEFAULT_MODEL
from ragbed.agents.models import describe_model
from ragbed.experiments.analysis.model_notes import note_models
from ragbed.experiments.analysis.notes import note_small_halves
from ragbed.experiments.guests.local_models import model_catalogue
from ragbed.strategies import Generate, Message


def test_another_judge_model_under_the_same_name_is_said(serve, town, ragbed):
    answering, grading = serve(town.reply), serve(lambda _: "Grade: Correct\nError type: None")
    path = town.config(answering.url, judge=f"{grading.url}#judge")
    assert ragbed("run", path)[0] == 0
    manifest = json.loads((town.run / "manifest.json").read_text())
    assert manifest["models"] == {f"{answering.url}#m": "m", f"{grading.url}#judge": "judge"}
    manifest["models"][f"{grading.url}#judge"] = "sha256:other"
    (town.run / "manifest.json").write_text(json.dumps(manifest))
    status, _, err = ragbed("run", path)
    assert status == 0
    assert f"another model under the name {grading.url}#judge" in err


def test_a_judge_that_fails_is_told_of_and_what_it_made_is_counted(serve, town, ragbed):
    answering, grading = serve(lambda _: "<Answer>7 [1]</Answer>"), serve(lambda _: {"status": 400})
    status, out, err = ragbed("run", town.config(answering.url, judge=f"{grading.url}#judge"), "--full")
    assert status == 1
    assert " ".join(out.split()).startswith(
        "5 of 5 answers are unjudged: call failed: http_400 (5); no cell has a score from it. town, 6 questions")
    assert "0.00 over" not in out
    assert "--full --retry` asks the judge again where its call failed" in err
    assert " unjudged " in next(line for line in out.splitlines() if " outcomes " in line)
    assert f"The judge {grading.url}#judge made 5 calls with 0 tokens" in " ".join(out.split())
    assert "6 new records, 11 calls sent and 0 reused from the journal, price unknown" in err


def test_calls_that_failed_are_counted(serve, town, ragbed):
    server = serve(lambda _: {"status": 400})
    (cell,) = json.loads(ragbed("run", town.config(server.url), "--json")[1])["cells"]
    assert (cell["outcomes"]["error"], cell["usage"]["calls"]) == (6, 6)


def test_the_rules_that_offer_no_refusal_are_named(serve, town, ragbed):
    run = json.loads(ragbed("run", town.config(serve(town.reply).url, rules=["grounded", "open"]), "--json")[1])
    scored = {cell["rules"]: cell["metrics"]["refusal_accuracy"]["n"] for cell in run["cells"]}
    assert scored == {"grounded": 1, "open": 0}
    assert any(note.startswith("Prompts with the rules open do not offer a refusal") for note in run["notes"])
    own = town.own({"id": "1", "question": "Who?", "answer": "Ada"}, pages={"ada.txt": "Ada"})
    path = town.config(serve(town.reply).url, name="answerable", rules=["open"], benchmark=own,
                       retriever="bm25")
    assert not any("do not offer a refusal" in note for note in json.loads(ragbed("run", path, "--json")[1])["notes"])
    assert "nothing to do: the run is complete" in ragbed("run", path)[2]


def test_the_small_model_is_told_of_under_any_name(tmp_path):
    entry = model_catalogue.entry_named(DEFAULT_MODEL)
    assert len(note_models(["SmolLM2-135M"])) == 1
    assert note_models(["http://127.0.0.1:9/v1#smollm2-135m"]) == []
    path = model_catalogue.find_model_files(entry)
    if path is not None:
        (tmp_path / "mine.gguf").symlink_to(path)
        assert note_models([f"gguf:{tmp_path / 'mine.gguf'}"])[0].startswith("gguf:")


def test_the_lexical_judge_stands_at_all_its_columns(serve, town, ragbed):
    out = ragbed("run", town.config(serve(town.reply).url), "--full")[1]
    header = out[out.index("outcomes") - 200:out.index("outcomes")]
    assert header.count("(lexical)") == 1  # of correct / partial / wrong; the title names the judge of the score


USED = {"prompt_tokens": 1000, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 400}}


async def paid(serve, name, prices, monkeypatch):
    server = serve([{"text": "x", "usage": USED}])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    async with open_model(name or f"{server.url}#m", ModelSettings(prices={
            key or f"{server.url}#m": value for key, value in prices.items()})) as model:
        done = await model.complete(Generate((Message("user", ("?",)),), "answer"), max_tokens=9)
    return done.reply.usage.price


@pytest.mark.parametrize(("price", "dollars"), [
    # 600 fresh tokens at 2, 400 cached at 0.5 and 50 written at 8 dollars a million; then all 1,000 at 2.
    (Price(prompt=2, cached=0.5, completion=8), 0.0018), (Price(prompt=2, completion=8), 0.0024),
    (Price(prompt=0, cached=0, completion=0), 0.0)])
async def test_a_server_of_one_s_own_costs_what_the_settings_say(serve, monkeypatch, price, dollars):
    assert await paid(serve, None, {None: price}, monkeypatch) == pytest.approx(dollars, abs=1e-12)


async def test_a_given_price_goes_before_the_listed_one_and_before_that_of_a_local_model(serve, monkeypatch):
    given = Price(prompt=100, completion=0)
    assert await paid(serve, "openai:gpt-4o-mini", {"openai:gpt-4o-mini": given}, monkeypatch) == pytest.approx(0.1)
    settings = ModelSettings(prices={"smollm2-135m": given})
    assert describe_model("smollm2-135m", settings)[1](1000, 50, 0) == pytest.approx(0.1)
    assert describe_model("smollm2-135m", ModelSettings())[1](1000, 50, 0) == 0


@pytest.mark.parametrize("wrong", [{"prompt": 1}, {"prompt": -1, "completion": 1}, {"prompt": 1, "completion": "inf"},
                                   {"prompt": 1, "completion": 1, "output": 1}])
def test_a_price_is_closed_whole_and_not_negative(wrong):
    with pytest.raises(ValidationError):
        Price(**wrong)


def test_a_run_its_judge_and_its_plan_are_priced_alike(serve, town, ragbed):
    server = serve(lambda body: "Wrong" if body["model"] == "judge" else town.reply(body))
    prices = {f"{server.url}#m": {"prompt": 1000, "completion": 10_000},
              f"{server.url}#judge": {"prompt": 1, "cached": 0, "completion": 2}}
    path = town.config(server.url, judge=f"{server.url}#judge", calls={"prices": prices, "calls": {"attempts": 1}})
    plan = ragbed.json("run", path, "--dry-run")
    use = plan["total"]
    assert use["price"]["least"] == pytest.approx(use["prompt_tokens"]["least"] * 0.001, rel=0.05)
    assert plan["judge"]["price"] == pytest.approx(
        (plan["judge"]["prompt_tokens"] + 2 * plan["judge"]["completion_tokens"]) / 1e6, rel=0.05)
    status, _, err = ragbed("run", path)
    assert status == 0, err
    for record in town.records():
        # The server says 700 tokens read and 12 written of each call.
        assert record["result"]["usage"]["price"] == pytest.approx(0.7 + 0.12)
        judged = record["result"]["judge_usage"]
        assert judged["price"] == pytest.approx(judged["prompt_tokens"] / 1e6 + judged["completion_tokens"] * 2 / 1e6)
        assert record["timing"]["paid"] == pytest.approx(0.82 + judged["price"])


def test_a_price_of_a_model_that_is_not_asked_is_one_line_that_names_those_that_are(town, ragbed):
    url = "http://127.0.0.1:9/v1"
    path = town.config(url, calls={"prices": {"gpt-4o": {"prompt": 1, "completion": 2}}})
    ragbed.refuses("run", path, says=["calls.prices: unknown model gpt-4o", f"this run uses {url}#m"])


def test_a_unified_score_of_a_half_with_fewer_than_ten_questions_is_told():
    def row(answerable, unanswerable):
        return {"metrics": {"unified": {"n": answerable + unanswerable}, "refused_answerable": {"n": answerable},
                            "refusal_accuracy": {"n": unanswerable}}}

    assert note_small_halves([row(40, 5), row(40, 12)])[0].startswith(
        "The unified score is the mean of two halves, answerable and unanswerable questions. One half has only 5 q")
    assert note_small_halves([row(40, 10)]) == note_small_halves([row(40, 0)]) == []
    assert note_small_halves([{"metrics": {}}]) == []
