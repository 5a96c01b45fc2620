"""A small constructed set, made by hand: what `ragbed construct` writes of it, for tests and for docs/review.png."""
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from patience import SECONDS
from pydantic import TypeAdapter

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.guests.review.items import DOCUMENTS, ITEMS, Evidence, Item

_MONTHS = (("January", 41_200, "gales on six days"), ("February", 39_800, "ice in the inner harbour"),
           ("March", 52_400, "the second crew"), ("April", 61_900, "the spring timetable"),
           ("May", 74_300, "two cruise calls"), ("June", 96_100, "the midsummer weekend"))
REPORT = Document("report", "reports/aster-2025.txt", "Aster Ferries: annual report 2025", "", "\n\n".join([
    "ANNUAL REPORT 2025",
    "Aster Ferries runs two lines out of Port Lorne: the northern line to Skell, and the island line to Marrow and "
    "Little Marrow. It is owned by the three harbour towns in equal parts.",
    *(f"{month}. {count:,} passengers were carried, in a month of {what}. The board met once, and took note of the "
      "figures without comment." for month, count, what in _MONTHS),
    "Fleet. The Cormorant, built in 1998, was sold in August; her place was taken by the Petrel, which carries 240 "
    "passengers and 31 cars. The Petrel makes 14 knots, two more than the Cormorant did.",
    "Staff. At the end of the year 118 people were employed, 9 more than a year before, most of them on the island "
    "line."]))
MINUTES = Document("minutes", "minutes/board-2025-07.html", "Board minutes, July 2025", (
    "<h1>Board minutes, July 2025</h1><p>Present: the chair, four members.</p><table><tr><th>vessel</th><th>price</th>"
    "</tr><tr><td>Cormorant</td><td>&euro;410,000</td></tr><tr><td>Petrel</td><td>&euro;2,900,000</td></tr></table>"
    "<p>The sale of the Cormorant to the Skell Rowing Club was approved with four votes to one.</p>"), "")
ATTACK = "document.title='PWNED'"
HOSTILE = (f'</script><script>{ATTACK}</script><img src="http://127.0.0.1:9/x" onerror="{ATTACK}">'
           f'<a href="javascript:{ATTACK}">x</a>\u202e\x07&#x202e;')


def quoted(document, words, format="plain"):
    start = document.text(format).index(words)
    return Evidence(document.id, format, start, start + len(words), words)


def chunk(document, words, format="plain"):
    one = quoted(document, words, format)
    return Chunk.of(document, format, one.start, one.end)


FLEET = REPORT.plain[REPORT.plain.index("Fleet."):REPORT.plain.index("\n\nStaff.")]
ITEMS_MADE = (
    Item("aster-1", "How much faster is the ferry that took the Cormorant's place, and who bought the Cormorant?",
         ("Two knots faster; the Skell Rowing Club bought the Cormorant", "2 knots; Skell Rowing Club"),
         evidence=(quoted(REPORT, "The Petrel makes 14 knots, two more than the Cormorant did."),
                   quoted(MINUTES, "The sale of the Cormorant to the Skell Rowing Club was approved", "html")),
         chunks=(chunk(REPORT, FLEET), chunk(REPORT, "Staff. At the end of the year 118 people were employed"),
                 chunk(MINUTES, "<p>The sale of the Cormorant to the Skell Rowing Club was approved with four votes to "
                       "one.</p>", "html")),
         made={"sub_questions": ["Which ferry took the Cormorant's place?", "How much faster is #1?",
                                 "Who bought the Cormorant?"],
               "sub_answers": ["The Petrel", "Two knots", "The Skell Rowing Club"]},
         tags={"tier": "complex", "reasoning": "multi-constraint"}, measured={"solved": 0.67, "closed-book": 0.0}),
    Item("aster-2", "In which month were the most passengers carried?", ("June",), options=("May", "June", "April"),
         evidence=(quoted(REPORT, "June. 96,100 passengers were carried"),), chunks=(chunk(REPORT, FLEET),),
         tags={"tier": "simple"}, measured={"solved": 1.0}),
    Item("aster-3", "How many cars does the Cormorant carry?", answerable=False, chunks=(chunk(REPORT, FLEET),),
         tags={"tier": "simple"}),
    Item("aster-4", "How many people were employed at the end of the year?", ("109",),
         evidence=(quoted(REPORT, "118 people were employed, 9 more than a year before"),), tags={"tier": "simple"}))


def write_made_set(folder, items=ITEMS_MADE, documents=(REPORT, MINUTES)):
    """Writes a set's folder; the items are those kept, and another one was lost."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"item": TypeAdapter(Item).dump_python(one, mode="json"), "lost": lost, "why": "", "calls": []}
            for one, lost in (*((item, "") for item in items), (Item("lost", "Which?"), "solvable"))]
    for name, content in ((ITEMS, rows), (DOCUMENTS, [TypeAdapter(Document).dump_python(one, mode="json")
                                                      for one in documents])):
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in content), encoding="utf-8")
    (folder / "card.json").write_text(json.dumps({"kind": "crest"}))
    (folder / "card.md").write_text("# A set\n\n## Settings\n\nnone\n")
    return folder


@contextmanager
def serving(*args):
    """`ragbed review` in a process of its own; its page's address, and the process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ragbed", "review", *map(str, args)], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=Path(__file__).parents[3], env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        line = process.stdout.readline()
        assert "http://" in line, process.communicate(timeout=SECONDS)
        yield re.search(r"http://\S+", line)[0], process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
