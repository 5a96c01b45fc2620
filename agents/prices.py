"""The price of a call: from the settings, or the table inside genai-prices, never updated over the network here."""
from __future__ import annotations

from agents.replies import Pricer
from agents.settings import Price


def free(prompt: int, completion: int, cached: int) -> float:
    """A local model costs nothing."""
    return 0.0


def priced(given: Price) -> Pricer:
    """The price that the settings give."""
    cached_price = given.prompt if given.cached is None else given.cached

    def price(prompt: int, completion: int, cached: int) -> float:
        return ((prompt - cached) * given.prompt + cached * cached_price + completion * given.completion) / 1_000_000

    return price


def pricer(url: str, model: str) -> Pricer:
    """Prices of a model as its provider lists them, in US dollars; None where provider or model is unknown.

    Args:
        url: the base URL, by which the provider is known. A server of one's own has no list price.
    """
    known = True

    def price(prompt: int, completion: int, cached: int) -> float | None:
        nonlocal known
        if not known:
            return None
        from genai_prices import Usage, calc_price
        try:
            usage = Usage(input_tokens=prompt, output_tokens=completion, cache_read_tokens=cached)
            return float(calc_price(usage, model, provider_api_url=url).total_price)
        except LookupError:
            known = False
            return None

    return price
