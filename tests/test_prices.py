"""Prices that the settings give: of a run, its judge and its plan, in US dollars per million tokens."""
import json

import pytest
from pydantic import ValidationError

from agents import ModelSettings, Price, open_model
from agents.models import without_opening
from strategies import Generate, Message

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
    assert without_opening("smollm2-135m", settings)[1](1000, 50, 0) == pytest.approx(0.1)
    assert without_opening("smollm2-135m", ModelSettings())[1](1000, 50, 0) == 0


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
    status, out, _ = ragbed("run", path, "--dry-run", "--json")
    assert status == 0
    plan = json.loads(out)
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
    ragbed.refuses("run", path, says=["calls.prices: no model is called gpt-4o", f"this run asks {url}#m"])
