"""Addresses within the page of the questions that a figure is of."""
from __future__ import annotations

from urllib.parse import quote, urlencode


def to_questions(**wanted: object) -> str:
    """The question browser with these filters set, such as `cell` (its number), `cause` or `outcome`."""
    return "#questions?" + urlencode({name: str(value) for name, value in wanted.items()}, quote_via=quote)
