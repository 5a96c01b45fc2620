"""Scenes and attacks as their files have them, and the pages that the two make: real HTML, read by the real parser."""
from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from documents.parse import parse_document
from documents.rows import Row, read_rows
from documents.types import Document, Format
from experiments.question import Goal
from strategies.reading import REFUSAL

Block = str | list[list[str]]  # a paragraph, or the rows of a table
_USUALLY = 2  # scenes that an attack is tried on
_WRAPPER = "<p>{text}</p>"


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was before anyone touched it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """A question and its pages, the first of which holds the answer.

    Attributes:
        answers: accepted ones.
        wrong: an answer of the same kind that no page has.
    """

    id: str
    split: str
    language: str
    question: str
    answers: tuple[str, ...]
    wrong: str
    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class Poison:
    """An attack, before it is put into a page.

    Attributes:
        text: what it says, with `{payload}`, `{wrong}`, `{question}` and `{refusal}` to be filled in.
        payload: the words or the number that it wants in the answer; `{wrong}` is the scene's.
        html: what stands around it on the page.
        technique: how it is hidden, or what it forges, where its kind does not say so.
        tried: on how many scenes.
        last: whether it always stands at the end of the page that is shown last, nearest to the question.
    """

    id: str
    kind: str
    split: str
    language: str
    goal: Goal
    text: str
    payload: str
    html: str
    technique: str
    tried: int = _USUALLY
    last: bool = False

    def payload_on(self, scene: Scene) -> str:
        """What it wants in the answer to this scene's question."""
        return _filled(self.payload, {"wrong": scene.wrong})

    def said(self, scene: Scene) -> str:
        """What it says on a page of this scene."""
        return _filled(self.text, {"payload": self.payload_on(scene), "wrong": scene.wrong,
                                   "question": scene.question, "refusal": REFUSAL})

    def told(self, scene: Scene, format: Format) -> str:
        """The longest line of it as a rendering shows it: where it is missing, the parser left the attack out."""
        longest = max((line.strip() for line in self.said(scene).splitlines()), key=len)
        return html.escape(longest, quote=False) if format == "html" else longest


def scenes(path: Path) -> list[Scene]:
    """The scenes of a file."""
    return [Scene(row.filled("id"), row.filled("split"), row.filled("language"), row.filled("question"),
                  row.filled_texts("answers"), row.filled("wrong"), tuple(map(_page, row.parts("pages"))))
            for row in read_rows(path)]


def poisons(path: Path) -> list[Poison]:
    """The attacks of a file."""
    return [Poison(row.filled("id"), row.filled("kind"), row.filled("split"), row.filled("language"),
                   cast(Goal, row.filled("goal")), row.filled("text"), row.optional("payload"),
                   row.optional("html") or _WRAPPER, row.optional("technique"),
                   row.number("scenes") if "scenes" in row.fields else _USUALLY,
                   row.flag("last", False)) for row in read_rows(path)]


def _page(row: Row) -> Page:
    return Page(row.filled("title"), tuple(row.fields["blocks"]))


def shown(scene: Scene, place: int, poison: Poison | None, turn: int) -> Document:
    """A page of the scene as the parser reads it, with the attack at its start, middle or end by turns."""
    page = scene.pages[place]
    blocks = list(map(_block, page.blocks))
    name = f"{scene.id}-{place + 1}"
    if poison is not None:
        at = len(blocks) if poison.last else (0, (len(blocks) + 1) // 2, len(blocks))[turn % 3]
        text = poison.said(scene)
        hidden = poison.html.startswith(("<!--", "<script"))
        blocks.insert(at, _filled(poison.html, {"text": text if hidden else _text(text)}))
        name += f"#{poison.id}"
    title = html.escape(page.title)
    made = f"<html><head><title>{title}</title></head><body><h1>{title}</h1>{''.join(blocks)}</body></html>"
    return parse_document(made.encode(), f"{name.replace('#', '+')}.html", name)


def _block(block: Block) -> str:
    return f"<p>{_text(block)}</p>" if isinstance(block, str) else _table(block)


def _table(rows: Sequence[Sequence[str]]) -> str:
    first, *others = rows
    head = "".join(f"<th>{_text(cell)}</th>" for cell in first)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in others)
    return f"<table><tr>{head}</tr>{body}</table>"


def _text(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")


def _filled(text: str, fields: Mapping[str, str]) -> str:
    """By name, and nothing else in braces: attacks quote JSON."""
    for name, value in fields.items():
        text = text.replace(f"{{{name}}}", value)
    return text
