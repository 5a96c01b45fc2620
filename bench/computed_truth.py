"""Check a set that `ragbed construct computed` built: SQLite recomputes every answer of every world.

    python bench/computed_truth.py SET

The script shares no code with `construct`. It reads tables from the pipe rows of the chunks, parses numbers and dates
by its own rules, and runs each operation as a query. For sentences, it fills the blank by matching the text around it.
A world without an answer is right if the query returns none. It prints how many answers agree, by operation, and each
one that differs. Exit status 1: an answer differs.
"""
import json
import re
import sqlite3
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
EMPTY = re.compile(r"[$€£¥₩]?\s*[-—–−.…]*\s*%?|\(?\*+\)?|\[redacted\]|n\s?[./]?\s?[am]\.?|"
                   r"not (meaningful|applicable|available)|nil|"
                   r"nan|none|tb[ad]|unknown|해당\s?없음|없음|미정", re.IGNORECASE)
MARK = re.compile(r"(?<=[\d%)])\s*\^?(\((\d|[a-z])\)|[*†‡§¹²³⁴-⁹⁰]+)$")  # of a footnote


def amount(text: str) -> int | None:
    """A cell in millionths, which SQLite adds and compares exactly; None where it holds no number."""
    found = re.search(r"\d[\d,]*\.?\d*|\.\d+", text)
    if found is None:
        return None
    value = Decimal(found[0].replace(",", ""))
    head = text[:found.start()]
    return int((-value if "(" in head or re.search(r"[-−–△▲]", head) else value) * 10**6)


def day(text: str) -> int | None:
    """A date as a number of eight digits."""
    text = text.lower()
    if found := re.search(r"(\d{4})\s*[-./년]\s*(\d{1,2})\s*(?:[-./월]\s*(\d{1,2})?)?", text):
        return int(found[1]) * 10_000 + int(found[2]) * 100 + int(found[3] or 0)
    year = re.search(r"\b(\d{4})\b", text)
    month = next((place for place, name in enumerate(MONTHS, 1) if re.search(rf"\b{name}", text)), 0)
    if year and not month and (found := re.search(r"(\d{1,2})/(\d{1,2})/\d{4}", text)):
        first, second = int(found[1]), int(found[2])
        return int(year[1]) * 10_000 + (first * 100 + second if first <= 12 else second * 100 + first)
    number = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", text.replace(year[1], "") if year else text)
    return int(year[1]) * 10_000 + month * 100 + (int(number[1]) if number and month else 0) if year else None


def table(content: str) -> tuple[list[str], list[list[str]]]:
    """Rows of cells of a chunk's pipe table, and its header with the lines of titles joined."""
    lines = [[cell.strip() for cell in line.strip()[1:-1].split(" | ")] for line in content.split("\n")
             if line.startswith("|")]
    rule = next(place for place, line in enumerate(lines) if all(re.fullmatch(r"-{3}", cell) for cell in line))
    titles = lines[:rule] if any(map(any, lines[:rule])) else lines[rule + 1:rule + 2]
    body = lines[rule + 1 if titles == lines[:rule] else rule + 2:]
    header = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*titles, strict=True)]
    return header, body


def loaded(db: sqlite3.Connection, number: int, content: str, key: str) -> None:
    """A table as rows of (entity, field, text, amount, day)."""
    header, body = table(content)
    db.execute(f"CREATE TABLE t{number} (entity TEXT, field TEXT, text TEXT, amount INTEGER, day INTEGER)")
    at = header.index(key) if key else 0
    for line in body:
        for place, (name, text) in enumerate(zip(header, line, strict=True)):
            entity, field = (line[at], name) if key else (name, line[0])
            if place == at or EMPTY.fullmatch(text):
                continue
            bare = MARK.sub("", text)
            text = bare if amount(bare) is not None and place != at else text
            db.execute(f"INSERT INTO t{number} VALUES (?, ?, ?, ?, ?)", (
                plain(entity) if not key else entity, field, text, amount(text), day(text)))


def plain(period: str) -> str:
    """A period's title without the scale that stands in it."""
    scale = r"\(?\b(?:in )?(?:thousands?|millions?|billions?)\b[^)]*\)?|\(unaudited\)|\([^()]*\)$"
    bare = " ".join(re.sub(scale, " ", period, flags=re.IGNORECASE).split())
    return bare or period


def of_table(plan: dict[str, Any], contents: list[str], keys: list[str]) -> Any:
    """What the query of a plan gives over the tables of a world; None where it gives nothing."""
    db = sqlite3.connect(":memory:")
    for number, (content, key) in enumerate(zip(contents, keys, strict=True)):
        loaded(db, number, content, key)
    operation, fields, entities = plan["operation"], plan["fields"], plan["entities"]

    def ask(query: str, *values: Any) -> Any:
        found = db.execute(query, values).fetchall()
        return found[0][0] if found else None

    one = "SELECT {} FROM t0 WHERE field = ? AND entity = ?"
    if operation == "look-up":
        return ask(one.format("text"), fields[0], entities[0])
    if operation in ("arg-max", "arg-min"):
        order = "DESC" if operation == "arg-max" else "ASC"
        return ask(f"SELECT entity FROM t0 WHERE field = ? AND amount NOT NULL ORDER BY amount {order} LIMIT 1",
                   fields[0])
    if operation in ("sum", "difference", "ratio"):
        found = [ask(one.format("amount"), fields[0], entity) for entity in entities]
        if None in found:
            return None
        if operation == "ratio":
            return ask("SELECT printf('%.10f', ? * 1.0 / ?)", *found)
        return ask(f"SELECT {' + '.join('?' * len(found))}" if operation == "sum" else "SELECT ? - ?", *found)
    if operation in ("before", "after"):
        order = "ASC" if operation == "before" else "DESC"
        marks = ", ".join("?" * len(entities))
        found = ask(f"SELECT count(*) FROM t0 WHERE field = ? AND entity IN ({marks}) AND day NOT NULL", fields[0],
                    *entities)
        return ask(f"SELECT entity FROM t0 WHERE field = ? AND entity IN ({marks}) ORDER BY day {order} LIMIT 1",
                   fields[0], *entities) if found == len(entities) else None
    if operation == "count":
        return ask("SELECT nullif(count(*), 0) FROM t0 a JOIN t0 b USING (entity) WHERE a.field = ? AND a.text = ? AND "
                   "b.field = ? AND b.amount > ?", fields[0], plan["where"][0], fields[1], amount(plan["where"][1]))
    return ask("SELECT b.text FROM t1 b WHERE b.field = ? AND b.entity = (SELECT entity FROM t0 WHERE field = ? AND "
               "amount NOT NULL ORDER BY amount DESC LIMIT 1)", fields[1], fields[0])


def of_sentences(plan: dict[str, Any], text: str) -> str | None:
    """What stands in the blanks: the one, or the earlier or later date."""
    filled, text = [], re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    for sentence in plan["entities"]:
        left, _, right = sentence.partition("____")
        end = r"(?=\s*(?:[A-Z가-힣“]|$))" if len(right) < 3 else ""  # `2011. 1. 1.` has three full stops
        begin = "" if left else r"(?:^|[.!?] )"
        found = re.search(begin + re.escape(left) + r"(.{1,40}?)" + re.escape(right) + end, text, re.MULTILINE)
        if found is None:
            return None
        filled.append(found[1])
    if plan["operation"] == "look-up":
        return filled[0]
    return (min if plan["operation"] == "before" else max)(filled, key=day)


def same(plan: dict[str, Any], found: Any, answers: list[str]) -> bool:
    """Whether what was found is the first of the accepted answers; of none, whether nothing was found."""
    if not answers or found is None:
        return not answers and found is None
    if plan["operation"] in ("sum", "difference"):
        return amount(answers[0]) == found
    if plan["operation"] == "ratio":
        return abs(Decimal(found) - Decimal(answers[0])) <= Decimal("0.005")
    return str(found) == answers[0]


def main(path: str) -> int:
    """Check every world of the set; return the exit status."""
    right, wrong = Counter(), []
    for line in Path(path, "computed", "computed.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for name, world in row["worlds"].items():
            contents = [world["contents"].get(str(place), one["content"]) for place, one in enumerate(row["documents"])]
            tables = [contents[place] for place in row["tables"]]
            if row["source"] == "sentences":
                found = of_sentences(row["plan"], "\n".join(tables))
            else:
                found = of_table(row["plan"], tables, row["keys"])
            if same(row["plan"], found, world["answers"]):
                right[row["operation"]] += 1
            else:
                wrong.append((row["id"], name, row["plan"], world["answers"], found))
    print("worlds that agree:", right.total(), dict(sorted(right.items())))
    for one in wrong:
        print("differs:", *one)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
