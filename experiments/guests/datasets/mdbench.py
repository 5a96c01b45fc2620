"""MDBench: reasoning over a set of documents that were generated from the rows of a table.

Paper: "MDBench: A Synthetic Multi-Document Reasoning Benchmark Generated with Knowledge Guidance", ACL 2025,
arXiv:2506.14927. Code and data: github.com/jpeper/MDBench, `data/datasets/mdbench_dataset.json`, a list of
records; the licence is not stated, and the data is not included in this project.

One invented record in the published format. Some documents, like the second here, are strings that hold a Python
dictionary:

    {"question": "Which light was lit first?", "ground_truth": "Aster Point, in 1871.",
     "documents": "Document 1: Aster Point was lit in 1871.\n\nDocument 2: {'text': \"Boral Rock came in 1880.\"}",
     "table": "|index|generation context|name|lit|\n|1|short|aster point|1871|\n|2|short|boral rock|1880|\n",
     "characteristic_breakdown": {"multi-hop": 2, "temporal": 4, "numeric": 3, "information_aggregation": 3,
      "soft_reasoning": 1}}

Raw files have one record each, with additional `validity_scalar` (1 to 5; 4 and 5 are valid) and `example_id`.
Generation logs are read too. One published record has no documents, so `provided` shows none.

The repository announces the data on the hub as `launch/mdbench`. It is read if it has these fields. `documents` may
also be a list of texts, then without `table` and `characteristic_breakdown`. ragbed was not tested with it.
"""
from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from ragbed.documents.rows import Row, convert_records
from ragbed.documents.types import Chunk
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles
from ragbed.experiments.benchmarks.fields import make_tags, passage, unique_id
from ragbed.experiments.question import Question, Scheme

_LONGEST = 100_000
_HINTS = ("generation context", "document context")


def unwrapped(document: str) -> str:
    """Extract the texts from a document that is the string form of a Python dictionary, such as `{'title': "…", 'text':
    "…"}`.

    The texts keep their order and are separated by blank lines. Numbers become text. Other documents, and dictionaries
    that cannot be parsed, are returned unchanged. No code is evaluated.
    """
    if not (document.startswith("{") and document.endswith("}") and len(document) <= _LONGEST):
        return document
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # raised for escapes that Python does not know
            texts = list(_texts(ast.parse(document, mode="eval").body))
        "".join(texts).encode("utf-8")  # rejects lone surrogates, which cannot be stored
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return document
    return "\n\n".join(text for text in texts if text.strip()) or document


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        yield str(node.value)
    elif isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
        for item in node.values if isinstance(node, ast.Dict) else node.elts:
            yield from _texts(item)
    else:
        raise ValueError("not a Python literal of strings")


def pipe_table(table: str) -> str:
    """Turn a bar-separated table into a GitHub Markdown table, without the columns that instruct the generator.

    Short rows are padded, and no row is cut. A table on one line is returned unchanged if its rows cannot be separated.
    """
    rows = [[cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
            for line in table.splitlines() if line.strip()]
    if len(rows) == 1:
        rows = _numbered(rows[0])
    if len(rows) < 2:
        return table
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    kept = [at for at, name in enumerate(rows[0]) if not any(hint in name.casefold() for hint in _HINTS)]
    head, *body = ([row[at] for at in kept] for row in rows)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(kept), *body))


def _numbered(cells: list[str]) -> list[list[str]]:
    """Split a table on one line into rows of equal length, numbered 1, 2, 3 after the header. The last row may be
    shorter. If no such rows are found, return the line as one row."""
    width = cells.index("1") if "1" in cells else 0
    rows = [cells[at:at + width] for at in range(0, len(cells), width)] if width else []
    numbered = all(row[0] == str(place) for place, row in enumerate(rows[1:], start=1))
    return rows if rows and numbered else [cells]


CHARACTERISTICS = ("multi-hop", "temporal", "numeric", "information_aggregation", "soft_reasoning")
_VALID = 4
_HEADER = re.compile(r"^Document (\d{1,9}): ", re.MULTILINE)
# Field names of a record in the generation log.
_IN_LOGS = {
    "Resultant Generated Question": "question", "Resultant Generated Answer": "ground_truth",
    "Generated Document Set": "documents", "Resultant Generated Table -- Bar-separated": "table",
    "Example Difficulty": "characteristic_breakdown", "Validity Scalar": "validity_scalar",
}


class Mdbench(RecordFiles):
    """MDBench from local files or the hub.

    Attributes:
        unwrap: show only the text of a document that is stored as a Python dictionary, and show tables without the
            columns `generation context` and `document context`, which instruct the generator. If False, show both as
            published.
        only_valid: leave out raw records whose validity is below 4.
    """

    about = About(
        paper="MDBench: A Synthetic Multi-Document Reasoning Benchmark Generated with Knowledge Guidance (2025), "
              "https://github.com/jpeper/MDBench",
        licence="not stated", size="153 public questions over 5 to 17 short documents each, of the paper's 1,000",
        get="data/datasets/mdbench_dataset.json of https://github.com/jpeper/MDBench, or hub:launch/mdbench (untested)",
        settings={"rules": "reading", "conditions": "provided", "reasoning": ["direct", "chain_of_thought"]},
        as_published={"unwrap": False})
    scheme = Scheme(
        groups=("points", "overlap", "form"), rubric="points", columns=("graded_accuracy", "graded_em", "em", "f1"),
        views=("order", *(f"by:{name.replace('-', '_')}" for name in CHARACTERISTICS)),
        published=("mdbench_1", "mdbench_2", "mdbench_3"))

    kind: Literal["mdbench"] = "mdbench"
    unwrap: bool = True
    only_valid: bool = True

    def loaded(self) -> Iterable[Loaded]:
        """Yield the questions. Questions without an id are numbered."""
        seen: Counter[str] = Counter()

        def made(numbered: tuple[int, Row]) -> Loaded | None:
            place, row = numbered
            if self.only_valid and "validity_scalar" in row.fields and row.number("validity_scalar") < _VALID:
                return None
            return _question(row, unique_id(row.stated_id("example_id") or str(place), seen), self.unwrap)

        return filter(None, convert_records(made, enumerate(map(_rename_fields, self.rows()), start=1)))


def _question(row: Row, id: str, unwrap: bool = True) -> Loaded:
    brought = [passage(unwrapped(content) if unwrap else content, id=f"{id}/{number}")
               for number, content in enumerate(_documents(row), start=1)]
    given = tuple(chunk for _, chunk in brought)
    shown: Chunk | None = None
    if table := (row.optional if isinstance(row.fields.get("documents"), list) else row.text)("table").strip():
        brought.append(passage(pipe_table(table) if unwrap else table, id=f"{id}/table"))
        shown = brought[-1][1]
    tags = _tags(row) | make_tags(documents="" if given else "none",
                               table="one line" if shown and "\n" not in shown.content else "")
    return Question(
        id=id, text=row.filled("question"), answers=(row.filled("ground_truth"),), answerable=True, provided=given,
        table=shown, tags=tags), [document for document, _ in brought]


def _rename_fields(row: Row) -> Row:
    if "Resultant Generated Question" not in row.fields:
        return row
    return replace(row, fields={new: row.fields[old] for old, new in _IN_LOGS.items() if old in row.fields})


def _documents(row: Row) -> list[str]:
    """Split the record's text into documents. A heading counts only if it has the next number."""
    if isinstance(row.fields.get("documents"), list):
        return [document.strip() for document in row.texts("documents")]
    text, starts, ends = row.text("documents"), list[int](), list[int]()
    for heading in _HEADER.finditer(text):
        if int(heading[1]) == len(starts) + 1:
            starts.append(heading.end())
            ends.append(heading.start())
    if text.strip() and (not starts or text[:ends[0]].strip()):
        row.fail("documents", "text that begins with 'Document 1: '", text)
    return [text[start:end].strip() for start, end in zip(starts, [*ends[1:], len(text)], strict=False)]


def _tags(row: Row) -> dict[str, tuple[str, ...]]:
    stated = "characteristic_breakdown" in row.fields or not isinstance(row.fields.get("documents"), list)
    part = row.part("characteristic_breakdown", row.decoded(
        "characteristic_breakdown", dict, "a dictionary of characteristics") if stated else {})
    validity = str(row.number("validity_scalar")) if "validity_scalar" in row.fields else ""
    return make_tags(**{name.replace("-", "_"): str(part.number(name)) for name in CHARACTERISTICS if stated},
                     validity=validity)
