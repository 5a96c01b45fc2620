"""How much a model's context holds, and how many tokens a text has at the least, whatever the tokeniser."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from documents.errors import CallTooLong
from strategies.types import Message

_WORD = re.compile(r"[^\W_]\S*")  # what stands between spaces, from its first letter or digit on
# Scripts that put no space between words: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
                       "\U00020000-\U0003ffff]+")
_CHARACTERS = 8  # of an unspaced script, that the longest usual tokens hold


def least_tokens(text: str) -> int:
    """A number of tokens that no usual tokeniser stays below: nothing is counted twice, or by its length.

    One for each word between spaces that has a letter or digit, since tokens do not reach over spaces; one for every
    eight characters of scripts without spaces. English has about 1.3 times as many, Chinese about six times.
    """
    words = len(_WORD.findall(text))
    unspaced = 0 if text.isascii() else sum(map(len, _UNSPACED.findall(text)))
    return max(words, unspaced // _CHARACTERS)


@dataclass(frozen=True, slots=True)
class Context:
    """A model's context.

    Attributes:
        tokens: that prompt and reply may have together.
        whole_reply: whether a prompt is refused that leaves less than the reply may take, as servers with a stated
            context do; llama.cpp's replies with what is left.
    """

    tokens: int
    whole_reply: bool = True

    def room(self, reply: int) -> int:
        """The tokens that a prompt may have where its reply may have so many."""
        return self.tokens - (reply if self.whole_reply else 1)

    def holds(self, characters: int, reply: int) -> bool:
        """Whether so many characters fit for sure as far as `least_tokens` can tell: a word and its space are two."""
        return characters // 2 + 1 <= self.room(reply)

    def check(self, messages: Sequence[Message], reply: int) -> None:
        """Refuse what cannot fit before it is sent.

        Raises:
            CallTooLong: with both sizes.
        """
        contents = [text for message in messages for text in (message.content, *_arguments(message))]
        if self.holds(sum(map(len, contents)) + len(contents), reply):
            return
        size = sum(map(least_tokens, contents))
        if size > self.room(reply):
            asked = f" and {reply} for the reply" if self.whole_reply else ""
            raise CallTooLong(f"the prompt has at least {size} tokens{asked}, and the model's context holds "
                              f"{self.tokens}; nothing was sent", "too_long", 0)


def _arguments(message: Message) -> list[str]:
    """What the calls of a message say. Names and marks are left out: how they are written is the template's."""
    functions = (call.get("function") for call in message.tool_calls)
    return [str(function.get("arguments", "")) for function in functions if isinstance(function, Mapping)]
