"""What strangers wrote, set apart from instructions: the marks around it, and what in it would pass for more than text.

Marks alone are delimiting; a sign on every line follows datamarking (Hines et al., "Defending Against Indirect Prompt
Injection Attacks With Spotlighting", 2024, arXiv:2403.14720), which puts one between all words: a line is what small
models still read well.
"""
from __future__ import annotations

import re
from functools import cache

from strategies.types import Framing

_LINE_START = re.compile(r"^", re.MULTILINE)
_NUMBER_LINE = re.compile(r"^([ \t]*)\[(\d{1,6})\]([ \t]*)$", re.MULTILINE)
# What chat templates begin and end turns with: servers read these in a message as they read their own.
_CONTROL = re.compile(r"[<＜](?=[|｜])|[<＜](?=/?(?:(?:start|end)_of_turn|s|bos|eos)>)|\[(?=/?INST\])|<(?=</?SYS>>)",
                      re.IGNORECASE)


def opening_of(*names: str) -> re.Pattern[str]:
    """Finds the `<` of marks of these names, in any case and spacing."""
    spaced = "|".join(name.replace("_", r"[\s_-]*") for name in names)
    return re.compile(rf"[<＜](?=[\s/／]*(?:{spaced})(?!\w))", re.IGNORECASE)


@cache
def marks_of(text: str) -> re.Pattern[str] | None:
    """Finds the `<` of the marks between which a prompt has its material; None where it has none."""
    names = re.findall(r"^</(\w+)>$", text, re.MULTILINE)
    return opening_of(*names) if names else None


_DOCUMENT_MARKS = opening_of("documents", "answer", "thinking", "think")


def without_turns(text: str) -> str:
    """The text without what begins or ends a turn of the conversation: `<|im_end|>` becomes `(|im_end|>`."""
    return _CONTROL.sub("(", text)


def framed(content: str, framing: Framing) -> str:
    """What a document says, as it is shown between the marks.

    Nothing in it ends the documents, begins another one with a number of its own, passes for a turn of the
    conversation, or for tags of the answer: the first character of each becomes `(`.
    """
    if framing == "none":
        return content
    content = _NUMBER_LINE.sub(r"\1(\2)\3", _DOCUMENT_MARKS.sub("(", without_turns(content)))
    return _LINE_START.sub("> ", content.rstrip("\n")) if framing == "quoted" else content
