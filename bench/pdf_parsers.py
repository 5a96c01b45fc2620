"""Compare ragbed's PDF parser with pymupdf4llm on the pages of FinanceBench's evidence: words, order, cells, time.

    python bench/pdf_parsers.py --data FOLDER
"""
from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pymupdf
import pymupdf4llm

from ragbed.documents.parsers.pdf import parse_pdf

WORD = re.compile(r"[A-Za-z]+|\d[\d,.]*\d|\d")


def words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def scores(evidence: str, page: str) -> dict[str, float | None]:
    """Return the shares of the evidence's words, of its word triples, and of its numbers as whole cells of a table."""
    wanted, found = words(evidence), words(page)
    triples = list(zip(wanted, wanted[1:], wanted[2:], strict=False))
    known = set(zip(found, found[1:], found[2:], strict=False))
    cells = Counter(re.sub(r"<br>|\*\*|[$€£\s]", "", cell).strip("()%—-") for line in page.splitlines()
                    if line.strip().startswith("|") for cell in line.strip().strip("|").split("|"))
    numbers = Counter(word for word in wanted if word[0].isdigit() and len(word) > 2 and set(word) & {",", "."})
    return {"words": (Counter(wanted) & Counter(found)).total() / len(wanted),
            "order": sum(triple in known for triple in triples) / max(len(triples), 1),
            "cells": (numbers & cells).total() / numbers.total() if numbers else None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds financebench/")
    folder = parser.parse_args().data / "financebench"
    evidence: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in map(json.loads, (folder / "financebench_open_source.jsonl").open(encoding="utf-8")):
        for one in row["evidence"]:
            evidence[row["doc_name"]][one["evidence_page_num"]].add(one["evidence_text"])
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    seconds, pages = Counter[str](), Counter[str]()
    for file in sorted((folder / "pdfs").glob("*.pdf")):
        wanted = sorted(evidence[file.stem])
        begun = time.process_time()
        own = parse_pdf(file.read_bytes(), file.name)
        seconds["ragbed"] += time.process_time() - begun
        starts = [*(page.plain for page in own.pages), len(own.plain)]
        begun = time.process_time()
        chunks = pymupdf4llm.to_markdown(pymupdf.open(file), pages=wanted, page_chunks=True, use_ocr=False)
        seconds["pymupdf4llm"] += time.process_time() - begun
        pages.update({"ragbed": len(own.pages), "pymupdf4llm": len(wanted)})
        for number, chunk in zip(wanted, chunks, strict=True):
            texts = {"ragbed": own.plain[starts[number]:starts[number + 1]], "pymupdf4llm": chunk["text"]}
            for name, text in texts.items():
                for passage in evidence[file.stem][number]:
                    for measure, share in scores(passage, text).items():
                        found[name][measure] += [] if share is None else [share]
    for name, measures in found.items():
        means = "  ".join(f"{measure} {sum(shares) / len(shares):.3f}" for measure, shares in measures.items())
        sys.stdout.write(f"{name:12}  {means}  {1_000 * seconds[name] / pages[name]:.0f} ms a page\n")


if __name__ == "__main__":
    main()
