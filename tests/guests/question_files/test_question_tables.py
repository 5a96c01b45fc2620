"""Questions from tables: which columns are understood, what cells mean, and what is refused in one line."""
import datetime
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import huggingface_hub
import openpyxl
import pyarrow
import pyarrow.parquet
import pytest

from ragbed.documents import BenchmarkError
from ragbed.experiments import BENCHMARKS, Gold
from ragbed.experiments.settings.file import check_settings


@pytest.fixture
def load(tmp_path):
    def load(content=None, name="questions.csv", **settings):
        if content is not None:
            (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return BENCHMARKS["questions"](path=str(tmp_path / name), **settings).load()
    return load


@pytest.fixture
def workbook(tmp_path):
    def workbook(**sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        book.save(tmp_path / "questions.xlsx")
        return book
    return workbook


def test_a_german_table_as_excel_saves_it_is_understood(load):
    table = ("Nr;Frage;Antwort;Quelle;Seite;Notiz;Kategorie\r\n"
             "007;Wie lange gilt die Garantie?;24 Monate | zwei Jahre;AGB.pdf;3-4;x;Garantie\r\n"
             "008;Was kostet es?;2.494,00 €;Preise.pdf, S. 2;;;Preis\r\n;;;;;;\r\n")
    found = load(table.encode("cp1252"))
    assert found.notes == ("2 questions from questions.csv: question <- Frage, answer <- Antwort, document <- Quelle, "
                           "page <- Seite, id <- Nr, tag <- Kategorie; ignored columns: Notiz; skipped 1 blank row: "
                           "line 4",)
    first, second = found.questions
    assert (first.id, first.answers, first.tags) == ("007", ("24 Monate", "zwei Jahre"), {"Kategorie": ("Garantie",)})
    assert first.gold == (Gold("AGB.pdf", page=3), Gold("AGB.pdf", page=4))
    assert (second.answers, second.gold) == (("2.494,00 €",), (Gold("Preise.pdf", page=2),))


def test_blank_rows_are_counted_and_named(load, workbook, tmp_path):
    understood = "2 questions from {}: question <- question, answer <- answer; skipped "
    csv = 'question,answer\nHow long?,"24\n\nmonths"\n,\n\nWho pays?,We do.\n" "," "\n'  # a blank line in quotes
    assert load(csv).notes == (f"{understood.format('questions.csv')}3 blank rows: lines 5 to 6, line 8",)
    workbook(One=[["question", "answer"], ["How long?", "24"], [], [], ["", " "], ["Who pays?", "We do."]])
    assert load(name="questions.xlsx").notes == (
        f"{understood.format('questions.xlsx')}3 blank rows: lines 3 to 5",)
    lines = ['{"question": "How long?", "answer": "24"}', "{}", '{"question": "Who pays?", "answer": "We do."}']
    assert load("\n".join(lines), "q.jsonl").notes == (f"{understood.format('q.jsonl')}1 blank row: line 2",)
    rows = pyarrow.table({"question": ["How long?", None, "Who pays?", ""], "answer": ["24", None, "We do.", " "]})
    pyarrow.parquet.write_table(rows, tmp_path / "q.parquet")
    assert load(name="q.parquet").notes == (f"{understood.format('q.parquet')}2 blank rows: line 2, line 4",)
    assert load("question,answer\n" + "".join(f"{one}?,b\n,\n" for one in "abcdefg")).notes[0].endswith(
        "skipped 7 blank rows: line 3, line 5, line 7, line 9, line 11 and 2 more places")


@pytest.mark.parametrize("content", [
    "\ufeffQuery,Ground Truth\nWhat?,007\n".encode(), "sep=|\r\nQuery|ground_truth\r\nWhat?|007\r\n",
    "QUERY\tground-truth\nWhat?\t007\n".encode("utf-16"), "answer,Query,GroundTruth\nmodel's,What?,007\n"])
def test_names_case_delimiters_and_encodings_do_not_matter(load, content):
    (question,) = load(content).questions
    assert (question.text, question.answers) == ("What?", ("007",))


@pytest.mark.parametrize(("name", "content"), [
    ("q.json", json.dumps({"version": 2, "questions": [{"question": "What?", "answer": ["a", "b"]}]})),
    ("q.json", json.dumps({"question": {"0": "What?"}, "answers": {"0": {"text": ["a", "b"], "answer_start": [1]}}})),
    ("q.jsonl", json.dumps({"inputs": {"question": "What?"}, "expectedOutput": {"value": "a", "aliases": ["b"]}})),
    ("q.yaml", "- question: What?\n  answers: [a, b]\n"),
    ("q.tsv", "question\tanswer\nWhat?\t\"[\"\"a\"\", \"\"b\"\"]\"\n"),
    ("q.csv", "question,answer\nWhat?,\"['a', 'b']\"\n")])
def test_lists_and_records_in_cells_are_accepted_answers(load, name, content):
    (question,) = load(content, name).questions
    assert (question.text, question.answers) == ("What?", ("a", "b"))


@pytest.mark.parametrize(("name", "content", "answers"), [
    ("q.yaml", "- {question: A, answer: 007}\n- {question: B, answer: 2024-01-05}\n- {question: C, answer: yes}\n",
     ["007", "2024-01-05", "yes"]),
    ("q.csv", 'question,answer\nA,"2,494.00"\nB,|x| = 5\nC,"[1, 5]"\n', ["2,494.00", "|x| = 5", "[1, 5]"])])
def test_numbers_dates_and_formulas_keep_their_text(load, name, content, answers):
    assert [question.answers for question in load(content, name).questions] == [(one,) for one in answers]


def test_parquet_values_are_written_as_people_write_them(load, tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({
        "question": ["A", "B", "C"], "answer": [24.0, 2.5, float("nan")], "answerable": [True, True, False],
        "difficulty": [datetime.datetime(2024, 1, 5)] * 3}), tmp_path / "q.parquet")
    questions = load(name="q.parquet").questions
    assert [one.answers for one in questions] == [("24",), ("2.5",), ()]
    assert [one.answerable for one in questions] == [True, True, False]
    assert questions[0].tags == {"difficulty": ("2024-01-05",)}


def test_a_sheet_is_read_as_it_shows_its_cells(load, workbook, tmp_path):
    book = workbook(Eins=[["Fragen 2024"], ["Frage", "Antwort"], ["Wie viel?", "007"], [None, None], ["Was?", 2494],
                          ["Wann?", datetime.date(2024, 1, 5)]])
    book["Eins"]["B5"].number_format = "#,##0.00"
    book["Eins"].row_dimensions[5].hidden = True  # a filter hides rows, but they are asked
    book.save(tmp_path / "questions.xlsx")
    questions = load(name="questions.xlsx").questions
    assert [one.answers for one in questions] == [("007",), ("2,494.00",), ("2024-01-05",)]


@pytest.mark.slow
def test_bad_workbooks_are_refused_in_one_line(load, workbook, tmp_path):
    book = workbook(One=[["question", "answer"], ["a", "=1+1"]], Two=[["question"], ["b"]])
    refused(load, "cell B2 has a formula without its result", name="questions.xlsx")
    book["One"]["B2"] = "b"
    book.save(tmp_path / "questions.xlsx")
    refused(load, "choose one of its sheets with sheet: NAME, .* the sheets are One, Two", name="questions.xlsx")
    assert load(name="questions.xlsx", sheet="Two").questions[0].text == "b"
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("xl/worksheets/sheet1.xml", "x")
        bomb.infolist()[0].file_size = 2_000_000_000
    refused(load, "unpacks to more than the limit", name="bomb.xlsx")
    refused(load, "not an Office file", "question,answer", "table.xlsx")


def refused(load, says, *content, **settings):
    with pytest.raises(BenchmarkError, match=says) as error:
        load(*content, **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("content", "says"), [
    ("question,query\na,b\n", r"the columns question and query could both be the question; choose one with columns: "),
    ("question,answer,answer\na,b,c\n", "two columns are called 'answer'"),
    ("Fragestellung,x\na,b\n", "the columns are Fragestellung, x; name it with columns: {question: COLUMN}"),
    ("How long?,24\nWhat?,3\n", "the first line holds a question; write the names of the columns above it"),
    ("id,question\n1,a\n1,b\n", "line 3: has the id 1 of line 2 again"),
    ("question,answer\na,b\na,c\n", "line 3: has the question of line 2 again"),
    ("question,answer\na,b\n,c\n", "line 3, field question: expected text that is not blank"),
    ("question,answer\na,\n", "line 2, column answer: there is no answer; if the documents have none, write no in a"),
    ("question,answer\na,N/A\n", "line 2, column answer: there is no answer"),
    ("question,answerable\na,maybe\n", "field answerable: expected yes or no, found 'maybe'"),
    ("question,file,page\na,x.pdf,0\n", "field page: expected a page from 1, such as 3 or 3-5, found '0'"),
    ("question,file,page\na,x.pdf|y.pdf,1|2|3\n", "expected one page for each of the 2 documents"),
    ("question,answer\na,b,c\n", "line 2: expected 2 fields, found 3"), ("question,answer\n", "contains no questions"),
    ("", "the file is empty"), (b"PK\x03\x04", "is a ZIP or Office file, not text")])
def test_what_is_ambiguous_or_wrong_is_refused_with_its_line(load, content, says):
    refused(load, says, content)


def test_a_mapping_names_columns_and_a_wrong_one_is_met_with_the_nearest(load):
    table = "Fragestellung,Lösung,Team\na,b,red\n"
    (question,) = load(table, columns={"question": "Fragestellung", "answer": ["Lösung"], "tags": "Team"}).questions
    assert (question.text, question.answers, question.tags) == ("a", ("b",), {"Team": ("red",)})
    refused(load, "has no column 'Losung'; did you mean 'Lösung'[?]", table, columns={"answer": "Losung"})


def test_blank_answers_mean_what_the_setting_says(load):
    table = "question,answer\na,\nb,c\nc,['N/A']\n"
    for empty, answerable in (("unanswerable", False), ("ungraded", True)):
        questions = load(table, empty_answer=empty).questions
        assert [(one.answers, one.answerable) for one in questions] == [
            ((), answerable), (("c",), True), (("N/A",), True)]


def test_passages_are_shown_and_those_of_the_reference_are_gold(load):
    ragas = {"user_input": "Who?", "reference": "Bob", "reference_contexts": ["Bob is king."], "response": "Al"}
    found = load(json.dumps(ragas), "ragas.jsonl")
    (question,) = found.questions
    assert [chunk.content for chunk in question.provided] == ["Bob is king."]
    assert [gold.chunk for gold in question.gold] == [question.provided[0].id]
    squad = {"question": "Who?", "context": "Bob is king.", "answers": {"text": ["Bob"], "answer_start": [0]}}
    (question,) = load(json.dumps(squad), "squad.jsonl").questions
    assert ([chunk.content for chunk in question.provided], question.gold) == (["Bob is king."], ())


def test_documents_are_found_in_the_corpus_whatever_their_case_folder_or_suffix(load, tmp_path):
    for name in ("legal/Terms.pdf", "a/prices.md", "b/prices.md"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text("x")
    corpus = {"corpus": str(tmp_path / "docs")}
    found = load("question,answer,source\na,b,C:\\files\\terms\nc,d,B/Prices.md\ne,f,gone.md\n", **corpus)
    assert [one.gold[0].document for one in found.questions] == ["legal/Terms.pdf", "b/prices.md", "gone.md"]
    refused(load, "the path of one document in .*, such as a/prices.md or b/prices.md", "question,source\na,prices\n",
            **corpus)


def test_own_fields_work_in_every_format(load):
    (question,) = load("question,answer,options,sub_questions,sub_answers,quote,document\n"
                       'a,x,x|y,"[""b?"", ""c?""]","[""1"", ""2""]",24 months,t.pdf\n').questions
    assert question.options == (("A", "x"), ("B", "y"))
    assert question.sub_answers == ("1", "2")
    assert question.gold == (Gold("t.pdf", quotes=("24 months",)),)


def test_a_split_of_a_data_set_is_named_after_its_folder(load, tmp_path):
    for name in ("data/train-00000-of-00001.jsonl", "data/test-00000-of-00001.jsonl"):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_text(json.dumps({"question": name, "answer": "x"}))
    refused(load, r"has several parts; name one, as in .*/test: test, train", name="set")
    assert load(name="set/test").questions[0].text == "data/test-00000-of-00001.jsonl"
    refused(load, "no such file or folder|has no 'dev'", name="set/dev")


def test_a_file_or_a_name_is_enough_in_settings(tmp_path):
    def settings(benchmark, **more):
        return check_settings({"name": "x", "models": "m", "benchmark": benchmark, **more}, "x.yaml")

    assert settings("demo").benchmark.kind == "demo"
    one = settings("questions.csv")
    assert (one.benchmark.kind, one.benchmark.path, one.conditions) == ("questions", "questions.csv", ["provided"])
    assert settings({"path": "q.xlsx", "corpus": "docs"}).conditions == ["retrieved"]
    assert settings("hub:owner/name/test", retriever={"kind": "bm25", "index": "i"}).conditions == ["retrieved"]


class Hub(BaseHTTPRequestHandler):
    """A data set as the Hugging Face hub serves it: its list of files, and each file."""

    FILES: ClassVar = {f"data/{split}-00000-of-00001.jsonl": json.dumps({"question": split, "answers": ["x"]}).encode()
                       for split in ("train", "test")}

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        name = self.path.partition("?")[0].rpartition(f"/resolve/{'a' * 40}/")[2]
        if "/api/datasets/owner/name" in self.path:
            files = [{"type": "file", "rfilename": one, "path": one, "size": len(content), "oid": "b" * 40}
                     for one, content in self.FILES.items()]
            body = json.dumps(files if "/tree/" in self.path else {
                "id": "owner/name", "sha": "a" * 40, "siblings": files}).encode()
        else:
            body = self.FILES.get(name, b"")
        self.send_response(200 if body else 404)
        for key, value in (("Content-Length", len(body)), ("ETag", f'"{name[:9]}"'), ("X-Repo-Commit", "a" * 40)):
            self.send_header(key, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_a_data_set_on_the_hub_is_fetched_by_split(tmp_path, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    real = huggingface_hub.snapshot_download
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **options: real(
        name, endpoint=f"http://127.0.0.1:{server.server_port}", cache_dir=tmp_path, **options))
    with pytest.raises(BenchmarkError, match="has several parts; name one, as in hub:owner/name/test: test, train"):
        BENCHMARKS["questions"](path="hub:owner/name").load()
    found = BENCHMARKS["questions"](path="hub:owner/name/test").load()
    server.shutdown()
    server.server_close()
    assert [(one.text, one.answers) for one in found.questions] == [("test", ("x",))]
