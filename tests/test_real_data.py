"""On public datasets that are not shipped: all of them load, parse and are cut; RAGBED_DATA names their folder."""
import bz2
import json
import re
import subprocess
import sys
from collections import Counter
from html import unescape
from pathlib import Path

import pymupdf
import pytest
from test_chunkers import CHUNKERS, checked

from ragbed.documents import FORMATS, parse_document
from ragbed.experiments.benchmarks import BENCHMARKS

BENCH = Path(__file__).parent.parent / "bench"
FILING, KBO = "financebench/pdfs/ULTABEAUTY_2023Q4_EARNINGS.pdf", "korean_rag/kbo_table_text.pdf"
# Benchmark, path, settings: questions, those without an answer, gold items, given and shared chunks; a tag's values.
LOADED = [
    ("hotpotqa", "hotpotqa/hotpotqa_100.json", {}, (100, 0, 200, 994, 0), "type", [83, 17]),
    ("hotpotqa", "hotpotqa/hotpotqa_100.json", {"units": "sentences"}, (100, 0, 256, 4265, 0), "type", [83, 17]),
    ("hotpotqa", "hotpotqa/hotpot_distractor_100.jsonl", {}, (100, 0, 200, 1000, 0), "type", [85, 15]),
    ("hotpotqa", "hotpotqa/hotpot_distractor_100.jsonl", {"units": "sentences"}, (100, 0, 249, 4258, 0), "type",
     [85, 15]),
    ("musique", "musique", {}, (200, 0, 478, 4000, 0), "hops", [145, 32, 23]),
    ("musique", "musique", {}, (200, 0, 478, 4000, 0), "chain", [200]),
    ("morehopqa", "morehopqa", {}, (150, 0, 300, 300, 0), "chain", [149, 1]),
    ("multihop_rag", "multihop_rag", {}, (500, 71, 1153, 0, 438), "question_type", [161, 154, 114, 71]),
    ("clapnq", "clapnq", {}, (600, 300, 300, 600, 0), "", []),
    ("rgb", "rgb", {}, (100, 0, 257, 500, 0), "test", [100]),
    ("rgb", "rgb", {"test": "rejection"}, (100, 100, 0, 444, 0), "test", [100]),
    ("financebench", "financebench", {}, (150, 0, 187, 187, 0), "pdf", [128, 22]),
    ("korean_rag", "korean_rag", {}, (114, 0, 114, 0, 720), "domain", [37, 29, 26, 22]),
    ("beir", "scifact", {}, (300, 0, 339, 0, 5183), "", []),
    ("chunking_eval", "chunking_eval", {}, (472, 0, 790, 0, 2610), "corpus", [144, 99, 97, 76, 56]),
    ("mdbench", "mdbench/mdbench_100.jsonl", {}, (100, 0, 0, 866, 0), "documents", [1])]


@pytest.mark.parametrize(("kind", "path", "settings", "counts", "tag", "values"), LOADED)
def test_published_files_load_whole_and_their_gold_can_be_found(data, kind, path, settings, counts, tag, values):
    benchmark = BENCHMARKS[kind](path=str(data / path), **settings).load()
    questions = benchmark.questions
    assert counts == (len(questions), sum(not one.answerable for one in questions),
                      sum(len(one.gold) for one in questions), sum(len(one.provided) for one in questions),
                      len(benchmark.shared))
    found = Counter(value for one in questions for value in one.tags.get(tag, ()))
    assert [count for _, count in found.most_common()] == values
    for one in questions:
        known = {chunk.id for chunk in (one.own or benchmark.shared)}
        assert all(gold.chunk in known if gold.chunk else gold.document in benchmark.documents or gold.page
                   for gold in one.gold)
        assert {"", "NA", "."}.isdisjoint(one.answers)
        assert len(one.sub_questions) == len(one.sub_answers)
        assert kind != "multihop_rag" or all(gold.start is not None for gold in one.gold)
        assert kind != "musique" or one.tags["hops"] == (str(len(one.gold)),)
        for place, text in enumerate(one.sub_questions):
            earlier = [answer for answer in one.sub_answers[:place] if len(answer) > 1 and answer.lower() not in (
                "yes", "no")]
            assert not [answer for answer in earlier
                        if re.search(rf"(?<![\w#]){re.escape(answer)}(?!\w)", text, re.IGNORECASE)], one.id


def test_documents_of_mdbench_are_taken_out_of_their_dictionaries(data):
    path = str(data / "mdbench" / "mdbench_100.jsonl")
    bare, published = (BENCHMARKS["mdbench"](path=path, unwrap=unwrap).load().questions for unwrap in (True, False))
    wrapped = [sum(chunk.content.startswith(("{'", '{"')) for chunk in one.provided) for one in published]
    assert (sum(map(bool, wrapped)), sum(wrapped)) == (65, 117)
    assert not any(chunk.content.startswith("{") for one in bare for chunk in one.provided)
    assert not any(hint in one.table.content for one in bare for hint in ("generation context", "document context"))
    assert bare[70].table.content.splitlines()[-1].startswith("| 8 | 2014 | new athlete |")


def test_a_whole_novel_loads(tmp_path, data):
    text = (data / "novels" / "gutenberg_863_mysterious_affair_at_styles.txt").read_text(encoding="utf-8-sig")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    numbered = "".join(f"[{number}] {paragraph}\n" for number, paragraph in enumerate(paragraphs, start=1))
    (tmp_path / "863-Styles-Agatha Christie.txt").write_text(numbered, encoding="utf-8")
    asked = [{"question": "Who?", "options": {"A": "Ida", "B": "Otto"}, "answer": "B", "reasoning": ["Oil.", "So."],
              "clue_position": [1000, -1], "answer_position": 2001 + 100 * (number % 5)} for number in range(40)]
    (tmp_path / "863.json").write_text(json.dumps({"novel_id": 863, "questions": asked}))
    questions = BENCHMARKS["detectiveqa"](path=str(tmp_path)).load().questions
    assert questions[0].whole[0].content == "\n".join(paragraphs[:2000])
    assert len({id(chunk) for one in questions for chunk in one.pool}) == 2400  # shared, not made for each question
    before = sum(map(len, paragraphs[:999])) + 999
    assert questions[0].steps[0].depth == before / len(questions[0].whole[0].content)


def parsed(data, name):
    return parse_document((data / name).read_bytes(), Path(name).name)


@pytest.mark.parametrize("name", [FILING, "korean_rag/korean_texts_two_page.pdf", KBO, "crag/dev_data.jsonl.bz2",
                                  "novels/gutenberg_863_mysterious_affair_at_styles.htm",
                                  "novels/gutenberg_2852_hound_of_the_baskervilles.txt"])
def test_real_files_are_covered_by_chunks_and_keep_their_pages(data, name):
    if name.endswith(".bz2"):
        with bz2.open(data / name, "rt") as lines:
            results = json.loads(next(lines))["search_results"]
        sources = [parse_document(result["page_result"].encode(), "page.html") for result in results]
    else:
        sources = [parsed(data, name)]
    usual = [chunker for chunker in CHUNKERS if getattr(chunker, "size", 60) >= 40
             and getattr(chunker, "target", 60) >= 60 and getattr(chunker, "smallest", 60) >= 60]
    for source, format, chunker in ((source, format, one) for source in sources for format in FORMATS for one in usual):
        chunks = checked(chunker, source, format)
        if name.endswith(".pdf"):
            assert (chunks[0].pages[0], chunks[-1].pages[1]) == (1, len(source.pages))
        else:
            assert chunks[0].pages is None


@pytest.mark.parametrize(("name", "lines"), [
    ("financebench/pdfs/ADOBE_2022_10K.pdf", [
        "|  | Years Ended | Years Ended | Years Ended |\n", "| Revenue: |  |  |  |\n"
        "| Subscription | $16,388 | $14,573 | $11,626 |\n| Product | 532 | 555 | 507 |\n"]),
    (KBO, ["| 구분 | 토요일 | 일요일/공휴일 | 평일 |\n| --- | --- | --- | --- |\n| 3월 | 17:00 | 14:00 | 18:30 |",
           "서스펜디드 경기로 한다."]),
    ("korean_rag/kbo_only_table.pdf", [
        "심판판정의 공정성, 일관성, 정확성 향상을 위해 자동 투구 판정 시스템(ABS)을 도입하고,"])])
def test_tables_and_broken_words_of_filings_and_reports_read_whole(data, name, lines):
    document = parsed(data, name)
    assert [line for line in lines if line not in document.plain] == []
    assert name != KBO or 'rowspan="' in document.html
    if "ADOBE" in name:
        start = document.plain.index("| Subscription | $16,388")
        assert (document.pages_of("plain", start, start + 10), len(document.pages)) == ((54, 54), 99)


def test_every_page_of_a_filing_has_all_its_characters_and_text_stays_above_its_table(data):
    document = parsed(data, FILING)
    ends = [*(page.html for page in document.pages[1:]), len(document.html)]
    with pymupdf.open(filename=data / FILING) as file:
        for page, here, end in zip(file, document.pages, ends, strict=True):
            written = unescape(re.sub(r"<[^>]*>", "", document.html[here.html:end]))
            missing = Counter("".join(page.get_text().split())) - Counter("".join(written.split()))
            assert set(missing) <= {"•"}, here
    filing = document.plain
    assert filing.index("Exhibit 2\n") < filing.index("| 52 Weeks Ended |", filing.index("Exhibit 2\n"))
    assert filing.index("primary category:\n") < filing.index("| Cosmetics |")


def measured(script, *options):
    done = subprocess.run([sys.executable, BENCH / script, *map(str, options), "--json"], capture_output=True,
                          text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_scripts_that_measure_real_data_run(data):
    embedded = measured("embedding.py", "--data", data, "--chunks", 12, "--rounds", 1, "--only", "onnx")
    assert (embedded["chunks"], list(embedded["contestants"])) == (12, ["onnx", "float32"])
    assert embedded["contestants"]["onnx"]["overlap"] > 0.99
