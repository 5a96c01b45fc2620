"""What MDBench's documents and tables say, out of the forms that their generator left them in."""
from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

_LONGEST = 100_000
_HINTS = ("generation context", "document context")


def unwrapped(document: str) -> str:
    """The texts of a document that is the text of a dictionary, such as `{'title': "…", 'text': "…"}`.

    They come in their order, a blank line between them; numbers are written out. Any other document comes back as it
    is, as does one whose dictionary cannot be read. Nothing is evaluated.
    """
    if not (document.startswith("{") and document.endswith("}") and len(document) <= _LONGEST):
        return document
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            texts = list(_texts(ast.parse(document, mode="eval").body))
        "".join(texts).encode("utf-8")  # refuses lone surrogates, which nothing can store
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return document
    return "\n\n".join(text for text in texts if text.strip()) or document


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        yield str(node.value)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _texts(value)
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        for item in node.elts:
            yield from _texts(item)
    else:
        raise ValueError("not a literal of texts")


def pipe_table(table: str) -> str:
    """A bar-separated table as a GitHub Markdown table, less the columns that hold hints to the generator.

    A row that is longer or shorter than the others is filled up, never cut. A table on one line, whose rows cannot be
    told apart, comes back as it is.
    """
    rows = [_cells(line) for line in table.splitlines() if line.strip()]
    if len(rows) == 1:
        rows = _numbered(rows[0])
    if len(rows) < 2:
        return table
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    kept = [at for at, name in enumerate(rows[0]) if not any(hint in name.casefold() for hint in _HINTS)]
    head, *body = ([row[at] for at in kept] for row in rows)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(kept), *body))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _numbered(cells: list[str]) -> list[list[str]]:
    """The rows of a table on one line: equally long ones that begin with 1, 2, 3 after the head; else the one.

    The last may be shorter: its number shows that those before it are whole.
    """
    width = cells.index("1") if "1" in cells else 0
    rows = [cells[at:at + width] for at in range(0, len(cells), width)] if width else []
    numbered = all(row[0] == str(place) for place, row in enumerate(rows[1:], start=1))
    return rows if rows and numbered else [cells]
