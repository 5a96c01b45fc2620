"""EmbedderKind: the settings of one kind of embedder, which open it.

What goes in front of queries and passages where a model was trained with it and its files do not say so.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from retrieval.embedder import Embedder
from retrieval.models.finding import prompts_of


class EmbedderKind(BaseModel):
    """Settings of an embedder: small, frozen and closed.

    Attributes:
        long: what becomes of a text that is longer than the model reads. By `windows` every part of it is embedded;
            `truncated`, its beginning stands for it, as in most published figures.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    long: Literal["windows", "truncated"] = "windows"

    def open(self) -> Embedder:
        """The embedder. What is large is loaded when first needed.

        Raises:
            ModelError: the model is not to be had.
            MissingExtra: a package that the settings need is not installed.
        """
        raise NotImplementedError

    def resolved(self) -> Self:
        """These settings with what they leave to the model, such as its prefixes, said outright.

        Raises:
            ModelError: the model is not to be had.
        """
        return self

    def shorthand(self) -> str | None:
        """The name that alone stands for these settings; None where they say more than a name can."""
        raise NotImplementedError


_BGE = "Represent this sentence for searching relevant passages: "
_E5_TASK = "Given a web search query, retrieve relevant passages that answer the query"

FAMILIES: tuple[tuple[str, str, str], ...] = (
    # A pattern of the model's name, the query's prefix, the passage's; the first that matches counts.
    (r"e5-.*instruct|e5-mistral", f"Instruct: {_E5_TASK}\nQuery: ", ""),  # model card of multilingual-e5-large-instruct
    (r"(^|[/_-])e5-", "query: ", "passage: "),  # model cards of intfloat/e5-* and multilingual-e5-*
    (r"bge-(small|base|large)-en", _BGE, ""),  # FlagEmbedding's README: for short queries, none for passages
    (r"bge-(small|base|large)-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"nomic-embed-text", "search_query: ", "search_document: "),  # model card of nomic-embed-text-v1 and v1.5
    (r"mxbai-embed|snowflake-arctic-embed-(xs|s|m|l)($|-v1|-long)|uae-large", _BGE, ""),  # their model cards
    (r"snowflake-arctic-embed-.*-v2", "query: ", ""),
    (r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
)
"""Families of models whose cards demand prefixes that not every copy of their files declares."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What is put in front of each query and of each passage, before they are embedded."""

    query: str = ""
    passage: str = ""

    @classmethod
    def of(cls, name: str, declared: Prefixes, query: str | None, passage: str | None) -> Prefixes:
        """Those that were asked for; else what the model declares; else its family's, if it declares none at all."""
        usual = declared if declared != cls() else family(name)
        return cls(usual.query if query is None else query, usual.passage if passage is None else passage)


def declared(folder: Path) -> Prefixes:
    """The prompts in a sentence-transformers model's files."""
    prompts = prompts_of(folder)
    passage = next((prompts[name] for name in ("document", "passage") if name in prompts), "")
    return Prefixes(str(prompts.get("query", "")), str(passage))


def family(name: str) -> Prefixes:
    """The prefixes of the family that a model's name tells; none where it tells none."""
    short = name.rstrip("/").rsplit("/", 1)[-1].lower()
    found = ((query, passage) for pattern, query, passage in FAMILIES if re.search(pattern, short))
    return Prefixes(*next(found, ("", "")))
