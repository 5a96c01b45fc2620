"""Cut the demo set from the raw data.

    python bench/cut_demo.py DATA [OUT]

DATA holds `hotpotqa/`, `clapnq/` and `tabfact/` as their publishers wrote them. Without OUT the set that is shipped is
written anew. The output is always the same.
"""
from __future__ import annotations

import argparse
import hashlib
import html
import json
import re
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo_choice import (
    CLAPNQ,
    CLAPNQ_PAGES,
    HOTPOTQA,
    MORE_CLAPNQ,
    MORE_HOTPOTQA,
    MORE_TABFACT,
    TABFACT,
    TABFACT_PAGES,
    Chosen,
)

from ragbed.experiments.benchmarks.jsonl import FOLDER

_LICENCES = {"HotpotQA": "CC BY-SA 4.0", "ClapNQ": "Apache-2.0", "TabFact": "MIT"}
_HEAD = ('<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{0}</title></head>\n'
         '<body>\n<h1>{0}</h1>\n')


@dataclass
class Cut:
    """The demo set in the making: pages by file name, questions, and a line of attribution for each."""

    pages: dict[str, str] = field(default_factory=dict)
    questions: list[dict[str, Any]] = field(default_factory=list)
    credits: list[str] = field(default_factory=list)

    def page(self, name: str, content: str, source: str, origin: str) -> str:
        if name not in self.pages:
            self.pages[name] = content
            self.credits.append(f"| `pages/{name}` | {source} {origin} | {_LICENCES[source]} |")
        return name

    def question(self, chosen: Chosen, text: str, answers: Sequence[str], gold: Sequence[str], source: str,
                 by: str) -> None:
        """One in three is unanswerable: its gold page was left out."""
        record: dict[str, Any] = {"id": chosen.id, "question": text, "answers": list(answers)}
        if chosen.left_out:
            record["answerable"] = False
        else:
            record["gold_documents"] = list(gold)
        record["tags"] = {"source": source, "pages": "plain" if source == "ClapNQ" else "html"}
        self.questions.append(record)
        self.credits.append(f"| question `{chosen.id}` | {source} {chosen.key}; {by} | {_LICENCES[source]} |")


def hotpotqa(cut: Cut, data: Path, choice: Sequence[Chosen]) -> None:
    """Supporting paragraphs and some distractors as HTML pages; question and answer as published."""
    rows = {row["id"]: row for row in _lines(data / "hotpotqa" / "hotpot_distractor_100.jsonl")}
    for chosen in choice:
        row = rows[chosen.key]
        gold = set(row["supporting_facts"]["title"])
        others = (title for title in row["context"]["title"] if title not in gold)
        lengths = {title: len("".join(sentences)) for title, sentences in zip(*row["context"].values(), strict=True)}
        shown = set(chosen.distractors or sorted(others, key=lengths.__getitem__)[:2]) | gold - set(chosen.left_out)
        names = {}
        for raw, sentences in zip(row["context"]["title"], row["context"]["sentences"], strict=True):
            if raw in shown:
                title = html.unescape(raw)
                body = f"<p>{html.escape(''.join(sentences), quote=False)}</p>\n"
                names[raw] = cut.page(f"{_slug(title)}.html", _html(title, body), "HotpotQA",
                                      f"{chosen.key}, paragraph {title!r}")
        cut.question(chosen, row["question"].strip(), [row["answer"]],
                     [names[title] for title in dict.fromkeys(row["supporting_facts"]["title"]) if title in names],
                     "HotpotQA", "question and answer as published")


def clapnq(cut: Cut, data: Path, choice: Sequence[Chosen]) -> None:
    """Passages as plain text, as published; our short answer stands before the published one."""
    rows = {row["id"]: row for row in _lines(data / "clapnq" / "clapnq_dev_answerable.jsonl")}
    for chosen in choice:
        row = rows[chosen.key]
        names = [] if chosen.left_out else [_passage(cut, row)]
        cut.question(chosen, row["input"], [chosen.answer, row["output"][0]["answer"].strip()], names, "ClapNQ",
                     "question and second answer as published, first answer shortened by us")
    for key in CLAPNQ_PAGES:
        _passage(cut, rows[key])


def tabfact(cut: Cut, data: Path, choice: Sequence[Chosen]) -> None:
    """Tables as HTML pages; the questions and answers are ours."""
    tables = {table["table_id"]: table for table in
              json.loads((data / "tabfact" / "small_test_tables.json").read_text(encoding="utf-8"))}
    for chosen in choice:
        names = [] if chosen.left_out else [_table(cut, tables[chosen.key])]
        cut.question(chosen, chosen.question, [chosen.answer], names, "TabFact", "question and answer written by us")
    for key in TABFACT_PAGES:
        _table(cut, tables[key])


def mixed(questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two answerable questions and one that is not, in turn, their sources mixed: so are the first few of them."""
    drawn = sorted(questions, key=lambda one: hashlib.sha256(one["id"].encode()).digest())
    right, wrong = ([one for one in drawn if one.get("answerable", True) is answerable] for answerable in (True, False))
    return [one for place, last in enumerate(wrong) for one in (*right[2 * place:2 * place + 2], last)]


def write(cut: Cut, out: Path) -> None:
    """The folder `out` anew: pages, questions, attribution."""
    shutil.rmtree(out / "pages", ignore_errors=True)
    (out / "pages").mkdir(parents=True)
    for name, content in cut.pages.items():
        (out / "pages" / name).write_text(content, encoding="utf-8", newline="\n")
    lines = "".join(json.dumps(question, ensure_ascii=False) + "\n" for question in cut.questions)
    (out / "questions.jsonl").write_text(lines, encoding="utf-8", newline="\n")
    text = (Path(__file__).parent / "demo_attribution.md").read_text(encoding="utf-8")
    (out / "ATTRIBUTION.md").write_text(text + "\n".join(cut.credits) + "\n", encoding="utf-8", newline="\n")


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _passage(cut: Cut, row: dict[str, Any]) -> str:
    passage = row["passages"][0]
    return cut.page(f"{_slug(passage['title'])}.txt", f"{passage['title']}\n\n{passage['text'].strip()}\n", "ClapNQ",
                    f"{row['id']}, passage {passage['title']!r}")


def _table(cut: Cut, table: dict[str, Any]) -> str:
    title = table["title"].capitalize()
    rows = [_row(table["header"], "th"), *(_row(cells, "td") for cells in table["rows"])]
    return cut.page(f"{_slug(title)}.html", _html(title, "<table>\n" + "".join(rows) + "</table>\n"), "TabFact",
                    f"{table['table_id']}, <{table['page_url']}>")


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell, quote=False)}</{tag}>" for cell in cells) + "</tr>\n"


def _html(title: str, body: str) -> str:
    return _HEAD.format(html.escape(title, quote=False)) + body + "</body>\n</html>\n"


def _slug(title: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path, nargs="?", default=FOLDER)
    options = parser.parse_args()
    cut = Cut()
    for source, choice in ((hotpotqa, HOTPOTQA), (clapnq, CLAPNQ), (tabfact, TABFACT)):
        source(cut, options.data, choice)
    first, cut.questions = cut.questions, []
    for source, choice in ((hotpotqa, MORE_HOTPOTQA), (clapnq, MORE_CLAPNQ), (tabfact, MORE_TABFACT)):
        source(cut, options.data, choice)
    cut.questions = first + mixed(cut.questions)
    write(cut, options.out)


if __name__ == "__main__":
    main()
