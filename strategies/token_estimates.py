"""Estimate the tokens of texts and prompts without a model's tokeniser."""
from __future__ import annotations

import json
import re
from functools import lru_cache

from ragbed.strategies.types import Generate

_PIECES = re.compile(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]")
_WORD, _DIGITS = 5, 2


@lru_cache(maxsize=1024)
def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: one per five letters of a word, per two digits, or per other character.

    Compared with SmolLM2's tokeniser, the estimate is 0.9 to 1.1 times as high for English prose and web pages. It is
    0.8 times as high for pages of figures, and 0.4 times for Korean, which that tokeniser splits into bytes.
    """
    count = 0
    for piece in _PIECES.findall(text):
        if piece.isascii() and piece.isalnum():
            count -= -len(piece) // (_DIGITS if piece.isdigit() else _WORD)
        else:
            count += 1
    return count


def estimate_prompt_tokens(call: Generate) -> int:
    """Estimate the tokens of a call's messages and tools, plus three for each message."""
    texts = [text for message in call.messages for text in (*message.parts, *map(json.dumps, message.tool_calls))]
    return 3 * len(call.messages) + sum(map(estimate_tokens, [*texts, *map(json.dumps, call.tools)]))
