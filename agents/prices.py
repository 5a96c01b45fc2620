"""The price of a call from the table inside genai-prices, which is never updated over the network here."""
from __future__ import annotations

from agents.replies import Pricer


def free(prompt: int, completion: int, cached: int) -> float:
    """A local model costs nothing."""
    return 0.0


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
