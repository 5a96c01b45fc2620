"""Write formulas of Word and PowerPoint (Office Math) on one line."""
from __future__ import annotations

from typing import Any

from ragbed.documents.parsers.formulas import (
    MAX_DEPTH,
    FormulaTree,
    Part,
    join_parts,
    wrap_part,
    write_part,
    write_prescripts,
    write_scripts,
)

_OFFICE = {  # Office Math element: MathML's name for it, and its arguments in order
    "f": ("mfrac", ("num", "den")), "sSup": ("msup", ("e", "sup")), "sSub": ("msub", ("e", "sub")),
    "sSubSup": ("msubsup", ("e", "sub", "sup")), "rad": ("mroot", ("e", "deg")), "limLow": ("munder", ("e", "lim")),
    "limUpp": ("mover", ("e", "lim"))}


def read_office_math(element: Any) -> str:
    """Return the formula of an `m:oMath` or `m:oMathPara` element of lxml."""
    def attribute(one: Any, name: str) -> str | None:
        found = one.find(f"{{*}}{one.tag.rpartition('}')[2]}Pr/{{*}}{name}")
        values = () if found is None else [value for key, value in found.attrib.items() if key.endswith("val")]
        return None if found is None else next(iter(values), "")

    tree = FormulaTree(lambda one: str(one.tag).rpartition("}")[2], lambda one: [each for each in one if isinstance(
        each.tag, str)], lambda one: "".join(each.text or "" for each in one.iter("{*}t")), attribute)
    return join_parts(_office(each, tree, 0) for each in tree.children(element))


def _office(element: Any, tree: FormulaTree, depth: int) -> Part:
    name = tree.name(element)
    if name.endswith("Pr") or name == "del":
        return Part("")
    if name == "r" or depth > MAX_DEPTH:
        return Part(tree.text(element), "run")
    parts = {tree.name(child): child for child in tree.children(element)}

    def read(child: Any) -> str:
        return "" if child is None else join_parts(_office(each, tree, depth + 1) for each in tree.children(child))

    if name in _OFFICE:
        kind, names = _OFFICE[name]
        return Part(write_part(kind, [read(parts.get(each)) for each in names]))
    if name == "sPre":
        return Part(write_prescripts(read(parts.get("sub")), read(parts.get("sup"))) + wrap_part(read(parts.get("e"))))
    if name == "nary":
        sign = tree.attribute(element, "chr")
        head = write_scripts("∫" if sign is None else sign, read(parts.get("sub")), read(parts.get("sup")))
        return Part(f"{head} {read(parts.get('e'))}")
    if name == "d":
        begin, end, between = (tree.attribute(element, each) for each in ("begChr", "endChr", "sepChr"))
        inside = ("|" if between is None else between).join(
            read(child).strip("[]") if _only(child, tree) == "m" else read(child)
            for child in tree.children(element) if tree.name(child) == "e")
        return Part(("(" if begin is None else begin) + inside + (")" if end is None else end))
    if name in ("m", "eqArr"):
        rows = [", ".join(read(cell) for cell in tree.children(row) if tree.name(cell) == "e") if name == "m"
                else read(row) for row in tree.children(element) if tree.name(row) in ("mr", "e")]
        return Part(f"[{'; '.join(rows)}]" if name == "m" else "; ".join(rows))
    if name == "func":
        return Part(f"{read(parts.get('fName'))} {read(parts.get('e'))}")
    if name == "acc":
        return Part(wrap_part(read(parts.get("e"))) + (tree.attribute(element, "chr") or "\u0302"))
    return Part(read(element))


def _only(element: Any, tree: FormulaTree) -> str:
    names = [tree.name(child) for child in tree.children(element) if not tree.name(child).endswith("Pr")]
    return names[0] if len(names) == 1 else ""
