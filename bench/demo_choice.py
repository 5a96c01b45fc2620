"""What the demo set takes from each source: which questions, which page each of four lacks, which pages distract."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chosen:
    """One question of the demo set.

    Attributes:
        key: the id of the record, or table, in its source.
        left_out: gold pages that the set lacks, which makes the question unanswerable.
        distractors: further pages of the same record.
        question, answer: where ours stand instead of the source's.
    """

    id: str
    key: str
    left_out: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    question: str = ""
    answer: str = ""


HOTPOTQA = (
    Chosen("tennis-born-first", "5a7ca0ef55429907fabeefd3",
           distractors=("Andrea Hlaváčková", "Nataša Zorić", "Serena Williams")),
    Chosen("railway-edinburgh", "5ac562985542993e66e823ca",
           distractors=("Edinburgh Waverley railway station", "Krishna railway station", "Habra railway station")),
    Chosen("sas-founded", "5ab5487b554299494045ef68",
           distractors=("Special Operations Force (Singapore)", "Giretsu Kuteitai", "Cuerpo de Fuerzas Especiales")),
    Chosen("bisquick-state", "5adeb78a554299728e26c77a", left_out=("General Mills",),
           distractors=("Hyundai Motor Group", "Toyota", "Juki")),
    Chosen("accession-opposite", "5a7a5b3a5542996c55b2dd71", left_out=("Mark Masons' Hall, London",),
           distractors=("Accession Council", "Pollokshields Burgh Hall", "Great Hall of the People")),
)

CLAPNQ = (
    Chosen("london-bridge-now", "4988326746697423597", answer="Lake Havasu City, Arizona"),
    Chosen("wellington-island", "-3119678287930545077", answer="the North Island"),
    Chosen("fire-triangle", "-3301882905827031751", answer="heat, fuel, and an oxidizing agent"),
    Chosen("hawaii-peak", "-823486921735600719", left_out=("Mauna Kea",), answer="Mauna Kea"),
)
CLAPNQ_PAGES = ("-5334327453087093295", "-3264674982292768799", "-3913791558291967751")

TABFACT = (
    Chosen("standard-bank-floors", "2-14669089-2.html.csv", answer="34",
           question="How many floors does the Standard Bank Building in Johannesburg have?"),
    Chosen("miss-lemon-actor", "2-10831820-1.html.csv", answer="Pauline Moran",
           question="Which actor plays the secretary Felicity Lemon in Agatha Christie's Poirot?"),
    Chosen("spearmon-time", "2-18569011-14.html.csv", answer="20.39", left_out=("the whole table",),
           question="What time did Wallace Spearmon run in the men's 200 metres at the 2008 Summer Olympics?"),
)
TABFACT_PAGES = ("2-18662685-8.html.csv", "1-29395291-2.html.csv")
