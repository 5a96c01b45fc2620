"""Write formulas, such as those of web pages (MathML), on one line, as in `x^2`, `1/2` and `√(a+b)`."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

MAX_DEPTH = 60
_ROOTS = {"": "√", "2": "√", "3": "∛", "4": "∜"}
_INVISIBLE = ("\u2061", "\u2062", "\u2063", "\u2064")  # signs for "applied to", "times", "and" and "plus"
_UNSEEN = frozenset({"mphantom", "annotation", "annotation-xml", "none", "mprescripts", "maligngroup", "malignmark"})


class Part(NamedTuple):
    """A part of a formula: its text, and whether it is a run of characters, a whole number, or built of parts."""

    text: str
    kind: Literal["run", "number", "built"] = "built"


class FormulaTree(NamedTuple):
    """Reads the elements of a formula, whichever library parsed it."""

    name: Callable[[Any], str]  # local name
    children: Callable[[Any], Sequence[Any]]
    text: Callable[[Any], str]  # all text inside
    attribute: Callable[[Any, str], str | None]  # an attribute, or in Office Math the value of a property


def read_mathml(element: Any) -> str:
    """Return the formula of a `math` element of BeautifulSoup."""
    from bs4 import Tag

    tree = FormulaTree(lambda one: str(one.name).rpartition(":")[2],
                       lambda one: [each for each in one.children if isinstance(each, Tag)],
                       lambda one: " ".join(one.get_text().split()), lambda one, key: one.get(key))
    return " ".join(_mathml(element, tree, 0).text.split())


def _mathml(element: Any, tree: FormulaTree, depth: int) -> Part:
    name = tree.name(element)
    if name in _UNSEEN:
        return Part("")
    children = [child for child in tree.children(element) if name == "mmultiscripts" or tree.name(child) not in _UNSEEN]
    if not children or depth > MAX_DEPTH:
        text = tree.text(element)
        if name == "mtext" or (text.isalpha() and len(text) > 1):
            return Part(f" {text} ", "run")
        return Part("" if text in _INVISIBLE else text, "number" if name == "mn" else "run")
    if name == "semantics":
        return _mathml(children[0], tree, depth + 1)
    parts = [_mathml(child, tree, depth + 1) for child in children]
    texts = [part.text for part in parts]
    if name in ("mfrac", "msup", "msub", "msubsup", "mroot", "munder", "mover", "munderover"):
        return Part(write_part(name, texts))
    if name == "msqrt":
        return Part(write_part("mroot", [join_parts(parts), ""]))
    if name == "mfenced":
        marks = (tree.attribute(element, "separators") or ",")[:1]
        begin, end = tree.attribute(element, "open"), tree.attribute(element, "close")
        return Part(("(" if begin is None else begin) + f"{marks} ".join(texts) + (")" if end is None else end))
    if name == "mmultiscripts":
        at = next((at for at, child in enumerate(children) if tree.name(child) == "mprescripts"), len(children))
        below, above = [*texts[1:at], "", ""][:2]
        before = write_prescripts(*[*texts[at + 1:], "", ""][:2])
        more = "".join(f" {text}" for text in [*texts[3:at], *texts[at + 3:]] if text)
        return Part(before + write_scripts(wrap_part(texts[0]), below, above) + more)
    if name == "mtable":
        return Part(f"[{'; '.join(texts)}]")
    if name in ("mtr", "mlabeledtr"):
        return Part(", ".join(texts))
    return parts[0] if len(parts) == 1 else Part(join_parts(parts))


def write_part(kind: str, texts: list[str]) -> str:
    first, second, third = [*texts, "", "", ""][:3]
    if kind == "mfrac":
        return f"{wrap_part(first)}/{wrap_part(second)}"
    if kind == "mroot":
        sign = _ROOTS.get(second.strip())
        return f"{sign}{wrap_part(first)}" if sign else f"root({second}, {first})"
    if kind in ("msup", "mover"):
        return write_scripts(wrap_part(first), "", second)
    return write_scripts(wrap_part(first), second, third)


def write_scripts(base: str, below: str, above: str) -> str:
    primes = above.strip("\u2032\u2033'*†°") == ""  # these marks are raised by themselves
    return base + (f"_{wrap_part(below)}" if below else "") + (above if primes else f"^{wrap_part(above)}")


def write_prescripts(below: str, above: str) -> str:
    """Return what stands below and above the line in front of a base, after a space, so that it is not taken for that
    of the base before it."""
    return " " + write_scripts("", below, above) if below or above else ""


def wrap_part(text: str) -> str:
    """Put a text in parentheses, unless it is one number, name or sign, or is in them already."""
    text = text.strip()
    inside = text[1:-1]
    closed = text[:1] + text[-1:] in ("()", "[]", "||") and not set("()[]|") & set(inside)
    bare = text.replace(".", "").replace(",", "")
    atom = bare.isdecimal() or bare.isalpha() or len(text) <= 1 or (
        text[0] in "-−+" and text[1:].replace(".", "").isdecimal())
    return text if closed or atom else f"({text})"


def join_parts(parts: Iterable[Part]) -> str:
    """Join parts, with a space where two would read as one number, as in `3 1/2`."""
    text, kind = "", "run"
    for part in parts:
        before, after = text[-1:], part.text[:1]
        numbers = before.isdecimal() and after.isdecimal() and (kind, part.kind) != ("run", "run")
        text += (" " if numbers or (kind == "built" and before.isalnum() and after.isalnum()) else "") + part.text
        kind = part.kind if part.text else kind
    return " ".join(text.split())
