"""Made files of a ferry company, and a model that answers questions of them: for docs/serve.png, and for tests of the
page that `ragbed serve` has."""
import re
from dataclasses import replace

import pymupdf
from serving import direct
from streamed import streamed

from ragbed.experiments.guests.serving.configurations import Measured
from ragbed.retrieval import build_index
from ragbed.strategies import REFUSAL

STYLE = ("body{font-family:serif;font-size:11.5px;line-height:1.5} h1{font-size:25px} h2{font-size:16px}"
         "td{padding:4px 14px 4px 0}")
MONTHS = (("January", 41_200), ("February", 39_800), ("March", 52_400), ("April", 61_900), ("May", 74_300),
          ("June", 96_100), ("July", 118_700), ("August", 121_400))
REPORT = [
    "<h1>Aster Ferries</h1><h2>Annual report 2025</h2><p>Aster Ferries runs two lines out of Port Lorne: the northern "
    "line to Skell, and the island line to Marrow and Little Marrow. It is owned by the three harbour towns in equal "
    "parts.</p><h2>From the chair</h2><p>It was a good year. More people travelled with us than in any year since the "
    "lines were joined in 1987, and fewer crossings were cancelled for weather than in the ten years before. The board "
    "thanks the crews, who made it possible.</p><h2>Passengers</h2><p>The summer decided the year: in July and August "
    "together 240,100 passengers were carried, a third more than in the summer before.</p><table>"
    + "".join(f"<tr><td>{month}</td><td>{count:,}</td></tr>" for month, count in MONTHS) + "</table>",
    "<h2>Fleet</h2><p>The Cormorant, built in 1998, was sold in August to the Skell Rowing Club; her place was taken "
    "by the Petrel, which carries 240 passengers and 31 cars. The Petrel makes 14 knots, two more than the Cormorant "
    "did, and needs 18 % less fuel on the same crossing.</p><p>The Gannet was in the yard for nine weeks in spring. "
    "Her engines were overhauled, and her ramps were made wider for vehicles of up to 16 tonnes.</p><h2>Staff</h2><p>"
    "At the end of the year 118 people were employed, 9 more than a year before, most of them on the island line.</p>",
    "<h2>Outlook</h2><p>From May 2026 the island line runs every forty minutes in place of every hour. Fares stay as "
    "they are until the end of 2026.</p>"]
AGENDA = "".join(f"<p>{number}. The {what} was taken note of without a vote, after questions of two members.</p>"
                 for number, what in enumerate(["report of the harbour master", "letter of the island council",
                                                "survey of the ramps", "price of fuel"] * 9, 1))
MINUTES = (f"<h1>Board minutes, July 2025</h1><p>Present: the chair, four members.</p>{AGENDA}<table><tr><th>vessel"
           "</th><th>price</th></tr><tr><td>Cormorant</td><td>&euro;410,000</td></tr><tr><td>Petrel</td><td>&euro;2,900,000</td></tr></table>"
           "<p>The sale of the Cormorant to the Skell Rowing Club was approved with four votes to one.</p>")
FERRY = "Which ferry replaced the Cormorant, and is it faster?"
BRIEF = "How many people worked there at the end of the year?"
UNSAID = "Who designed the Petrel?"


def write_files(folder):
    """The report as a PDF of three pages, and the minutes as HTML."""
    folder.mkdir()
    book = pymupdf.open()
    for html in REPORT:
        book.new_page(width=480, height=640).insert_htmlbox(pymupdf.Rect(54, 54, 426, 600), html, css=STYLE)
    book.set_metadata({"title": "Aster Ferries: annual report 2025"})
    (folder / "aster-2025.pdf").write_bytes(book.tobytes(garbage=3, deflate=True))
    (folder / "minutes-2025-07.html").write_text(f"<title>Board minutes, July 2025</title>{MINUTES}")
    return folder


def index_of_aster(folder):
    build_index([write_files(folder / "files")], folder / "index")
    return folder / "index"


def number_of(prompt, words):
    """The number under which a prompt shows the passage with these words."""
    before = prompt[:prompt.index(words)]
    return re.findall(r"^\[(\d+)\]", before, re.MULTILINE)[-1]


def say(body):
    """What the model says."""
    prompt = body["messages"][-1]["content"] if len(body["messages"]) == 1 else "\n".join(
        str(message["content"]) for message in body["messages"])
    question = prompt.rsplit("Question:", 1)[-1]
    if "Cormorant" in question:
        report, minutes = number_of(prompt, "her place was taken"), number_of(prompt, "was approved with")
        return (f"The **Petrel** took the place of the Cormorant in August 2025 [{report}]. It is faster:\n\n"
                f"- it makes 14 knots, two more than the Cormorant did [{report}]\n"
                f"- it needs 18 % less fuel on the same crossing [{report}]\n\nThe Cormorant went to the Skell Rowing "
                f"Club, by four votes to one [{minutes}].")
    if "people worked" in question:
        return f"At the end of the year 118 people were employed [{number_of(prompt, '118 people')}]."
    return REFUSAL


def model(body):
    return streamed(say(body), 6) if body.get("stream") else say(body)


def configurations(index, url):
    """Two that were measured, and answer alike."""
    measured = Measured("em", 0.62, 0.55, 0.69, 150, "harbour", "2026-11-20")
    other = Measured("em", 0.68, 0.61, 0.75, 150, "harbour", "2026-11-20")
    return [replace(direct(index, f"{url}#qwen3-8b", name, k=4, reasoning=name), measured=found)
            for name, found in (("direct", measured), ("chain_of_thought", other))]
