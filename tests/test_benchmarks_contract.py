"""What holds for every loader, on the few rows of `tests/data/<kind>`: a broken row is one line that says where, hidden
copies of files are none, and a path that is none is one line."""
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from convert_detectiveqa import paragraphs_of
from each_case import each
from pydantic import TypeAdapter

from ragbed.documents import BenchmarkError, Document
from ragbed.documents.rows import read_rows
from ragbed.experiments import BENCHMARKS, Question, Step, find_metric
from ragbed.experiments.analysis.analyses import find_view
from ragbed.experiments.benchmarks import OwnQuestions
from ragbed.experiments.benchmarks.base import files_below
from ragbed.experiments.guests.datasets.published_tables import load_published
from ragbed.experiments.metrics import GROUPS
from ragbed.experiments.runs.store import question_json

DATA = Path(__file__).parent / "data"
KINDS = sorted(folder.name for folder in DATA.iterdir() if folder.name in BENCHMARKS)


@dataclass(frozen=True)
class Records:
    """The file whose first record is broken, and the fields without which it does not load, `/` between levels."""

    file: str
    required: tuple[str, ...]


RECORDS = {
    "crest": Records("non_refusal.jsonl", ("query", "answer", "documents", "meta")),
    "mrceval": Records("MRCEval.jsonl", ("context", "question", "choices", "answer")),
    "mdbench": Records("mdbench_dataset.json", (
        "question", "ground_truth", "documents", "table", "characteristic_breakdown",
        "characteristic_breakdown/temporal")),
    "detectiveqa": Records("anno_data_en/human_anno/7.json", (
        "novel_id", "questions", "questions/0/question", "questions/0/options", "questions/0/options/B",
        "questions/0/answer", "questions/0/reasoning", "questions/0/clue_position", "questions/0/answer_position")),
    "mrke": Records("mrke.jsonl", (
        "context", "question", "answer", "sub_questions", "sub_answers", "original/context", "original/question",
        "original/answer", "original/sub_answers")),
    "hotpotqa": Records("hotpot_dev_distractor_v1.json", ("_id", "question", "answer", "context", "supporting_facts")),
    "two_wiki": Records("dev.json", (
        "_id", "type", "question", "answer", "context", "supporting_facts", "evidences")),
    "musique": Records("musique_ans_v1.0_dev.jsonl", (
        "id", "question", "answer", "answer_aliases", "paragraphs", "paragraphs/0/title",
        "paragraphs/0/paragraph_text", "question_decomposition", "question_decomposition/0/question",
        "question_decomposition/0/answer")),
    "morehopqa": Records("morehopqa_final.json", (
        "_id", "question", "answer", "no_of_hops", "reasoning_type", "answer_type", "context",
        "question_decomposition", "question_decomposition/0/question", "question_decomposition/0/answer")),
    "multihop_rag": Records("MultiHopRAG.json", (
        "answer", "question_type", "evidence_list", "evidence_list/0/url", "evidence_list/0/fact")),
    "clapnq": Records("clapnq_dev_answerable.jsonl", (
        "id", "input", "passages", "passages/0/title", "passages/0/text", "output", "output/0/answer")),
    "squad2": Records("dev-v2.0.json", (
        "data/0/title", "data/0/paragraphs", "data/0/paragraphs/0/context", "data/0/paragraphs/0/qas",
        "data/0/paragraphs/0/qas/0/id", "data/0/paragraphs/0/qas/0/question",
        "data/0/paragraphs/0/qas/0/answers", "data/0/paragraphs/0/qas/0/answers/0/text")),
    "rgb": Records("en_fact.json", ("id", "query", "answer", "positive", "negative")),
    "financebench": Records("financebench_open_source.jsonl", (
        "financebench_id", "company", "doc_name", "question_type", "question", "answer", "evidence",
        "evidence/0/doc_name", "evidence/0/evidence_page_num")),
    "mtrag": Records("reference.jsonl", (
        "task_id", "turn", "Collection", "Answerability", "Question Type", "contexts", "input", "input/0/text")),
    "korean_rag": Records("qa.jsonl", ("query", "generation_gt", "retrieval_gt")),
    "browsecomp_plus": Records("browsecomp_plus_decrypted.jsonl", (
        "query_id", "query", "answer", "evidence_docs/0/docid", "gold_docs/0/docid")),
    "longmemeval": Records("longmemeval_s_cleaned.json", (
        "question_id", "question_type", "question", "answer", "haystack_sessions", "haystack_sessions/0/0/role",
        "haystack_sessions/0/0/content")),
    "beir": Records("corpus.jsonl", ("_id", "text")),
    "trec": Records("corpus.jsonl", ("_id", "text")),
}
MISSING = object()
WRONG = (3.5, {"some": None}, [{"some": None}])
SAID = [(kind, field) for kind, records in RECORDS.items() for field in records.required
        if field.rpartition("/")[2] in ("question", "query", "input", "answer", "ground_truth", "sub_questions")
        and (kind, field) != ("clapnq", "output/0/answer")]  # where a blank one says that there is none
BROKEN = [(kind, field) for kind, records in RECORDS.items() for field in records.required]


def settings(kind, **changes):
    return BENCHMARKS[kind](**{"path": str(DATA / kind), **changes})


def ids(kind, path, **changes):
    return [question.id for question in settings(kind, path=str(path), **changes).load().questions]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def test_ids_are_unique_and_questions_say_something(kind):
    questions = settings(kind).load().questions
    assert len({question.id for question in questions}) == len(questions) > 1
    assert all(question.text.strip() for question in questions)
    for question in questions:
        assert not question.options or set(question.answers) <= {label for label, _ in question.options}
        assert len(question.sub_answers) in (0, len(question.sub_questions))


def test_every_chunk_is_of_a_known_document_and_named_gold_can_be_found(kind):
    benchmark = settings(kind).load()
    chunks = [chunk for question in benchmark.questions for chunk in question.chunks] + list(benchmark.shared)
    for chunk in chunks:
        document = benchmark.documents[chunk.document]
        assert isinstance(document, Document)
        assert document.text(chunk.format)[chunk.start:chunk.end] == chunk.content.removeprefix(chunk.prefix)
    assert set(benchmark.documents) == {chunk.document for chunk in chunks}
    for question in benchmark.questions:
        own = {chunk.id for chunk in (question.own or benchmark.shared)}
        known = {*own, *(chunk.id for chunk in benchmark.shared)}
        assert [gold for gold in question.gold if gold.chunk and gold.document in benchmark.documents
                and gold.chunk not in known] == []


def test_scheme_and_name_are_the_settings(kind):
    benchmark = settings(kind).load()
    assert benchmark.scheme is BENCHMARKS[kind].scheme
    assert benchmark.name.partition(":")[0] == kind
    about = BENCHMARKS[kind].about
    assert all(text.strip() for text in (about.paper, about.licence, about.size, about.get))


@each("name", [*BENCHMARKS, "own questions with every field"])
def test_whatever_a_scheme_names_exists(name):
    every = Question("q", "?", ("A",), True, options=(("A", "x"),), sub_answers=("x",), steps=(Step("x"),))
    scheme = BENCHMARKS[name].scheme if name in BENCHMARKS else OwnQuestions(path="own").scheme_of([every])
    assert set(scheme.groups) <= set(GROUPS)
    computed = {metric.name for group in scheme.groups for metric in GROUPS[group].metrics}
    named = [find_metric(name) for column in scheme.columns for name in column.split(" / ")]
    assert {metric.name for metric in named} <= computed
    assert all(map(find_view, scheme.views))
    assert all(map(load_published, scheme.published))
    assert (scheme.rubric is not None) == any(metric.judged for group in scheme.groups
                                              for metric in GROUPS[group].metrics)


def test_limit_and_filter_choose_in_order(kind):
    questions = settings(kind).load().questions
    assert [question.id for question in settings(kind, limit=1).load().questions] == [questions[0].id]
    tags = {(tag, value) for question in questions for tag, values in question.tags.items() for value in values}
    for tag, value in sorted(tags):
        chosen = settings(kind, filter={tag: value}).load().questions
        assert [question.id for question in chosen] == [
            question.id for question in questions if value in question.tags.get(tag, ())]
    with pytest.raises(BenchmarkError, match="no question has colour=red"):
        settings(kind, filter={"colour": "red"}).load()


def test_a_seed_draws_one_sample_and_seeds_draw_others(kind):
    every, samples = ids(kind, DATA / kind), []
    for seed in (*range(30), 3):
        sample = ids(kind, DATA / kind, sample=len(every) - 1, seed=seed)
        assert sample == [id for id in every if id in sample]
        assert len(sample) == len(every) - 1
        samples.append(sample)
    assert samples[3] == samples[-1]
    assert len({tuple(sample) for sample in samples}) > 1


def test_what_is_chosen_brings_only_its_own_documents(kind):
    one = settings(kind, limit=1).load()
    brought = {chunk.document for question in one.questions for chunk in question.chunks}
    assert set(one.documents) == brought | {chunk.document for chunk in one.shared}


def test_questions_are_stored_as_json_and_come_back(kind):
    adapter = TypeAdapter(Question)
    for question in settings(kind).load().questions:
        bare = question.drop_chunks()
        assert adapter.validate_json(question_json(bare)) == bare
        assert adapter.validate_json(adapter.dump_json(question)) == question


@pytest.mark.parametrize(("kind", "field"), BROKEN)
def test_a_missing_or_mistyped_field_says_file_line_field_and_what_was_expected(tmp_path, kind, field):
    *above, last = field.split("/")
    for value in (MISSING, *WRONG):
        file, _ = _broken(tmp_path, kind, field, lambda before, value=value: value)
        with pytest.raises(BenchmarkError) as refused:
            settings(kind, path=str(tmp_path / kind)).load()
        said = str(refused.value)
        assert "\n" not in said
        named = re.search(rf"{re.escape(str(file))}, line 1, field (.+?): expected .+, found ", said)
        assert named, said
        assert last in named[1] or above[-1] in named[1], said


@pytest.mark.parametrize("kind", RECORDS)
def test_records_that_do_not_fit_are_left_out_and_named_where_that_is_asked_for(tmp_path, kind):
    file, records = _broken(tmp_path, kind, RECORDS[kind].required[-1], lambda before: 3.5)
    whole, lines = settings(kind).load(), file.suffix == ".jsonl"
    texts = [*map(json.dumps, records), "[1" if lines else "[1]"]
    file.write_text("\n".join(texts) if lines else f"[{', '.join(texts)}]")
    benchmark = settings(kind, path=str(tmp_path / kind), skip_bad=True).load()
    assert len(benchmark.skipped) == 2
    assert re.search(rf"{re.escape(file.name)}, line 1, field \S+: expected .+, found 3.5", "".join(benchmark.skipped))
    assert re.search(rf"(line|record) {len(texts)}: expected (one|a) JSON object", "".join(benchmark.skipped))
    left = (len(benchmark.questions), len(benchmark.shared))
    assert (0, 0) < left < (len(whole.questions), len(whole.shared))


def test_a_file_of_which_nothing_fits_is_refused_all_the_same(tmp_path):
    (tmp_path / "dev.jsonl").write_text("[1\n{}\n")
    with pytest.raises(BenchmarkError, match=r"hotpotqa: no question in it that fits: .*line 1: expected one JSON"):
        settings("hotpotqa", path=str(tmp_path / "dev.jsonl"), skip_bad=True).load()


@pytest.mark.parametrize(("kind", "field"), SAID)
def test_a_question_or_answer_that_is_blank_is_refused(tmp_path, kind, field):
    _broken(tmp_path, kind, field, lambda before: [" "] * len(before) if isinstance(before, list) else " ")
    last = field.rpartition("/")[2]
    with pytest.raises(BenchmarkError, match=rf", line 1, field \S*{last}\S*: expected .+, found .*' *'"):
        settings(kind, path=str(tmp_path / kind)).load()


def _broken(tmp_path, kind, field, change):
    """A copy of the fixture whose first record has another value in the field: the file, and its records."""
    shutil.copytree(DATA / kind, tmp_path / kind, dirs_exist_ok=True)
    file = tmp_path / kind / RECORDS[kind].file
    content = file.read_text(encoding="utf-8")
    try:  # a list or one object, or one on each line, whatever the file is called
        whole = json.loads(content)
    except ValueError:
        whole = list(map(json.loads, content.splitlines()))
    records = whole if isinstance(whole, list) else [whole]
    *above, last = (int(part) if part.isdigit() else part for part in field.split("/"))
    inside = records[0]
    for part in above:
        inside = inside[part]
    inside[last] = change(inside[last])
    if inside[last] is MISSING:
        del inside[last]
    file.write_text(json.dumps(records) if content.startswith("[") else "\n".join(map(json.dumps, records)))
    return file, records


def test_hidden_copies_and_notes_of_other_programs_are_not_read(tmp_path, kind):
    folder = tmp_path / "here"
    shutil.copytree(DATA / kind, folder)
    for file in [file for file in folder.rglob("*") if file.is_file()]:
        for place in (folder / ".ipynb_checkpoints", file.parent / ".ipynb_checkpoints"):
            place.mkdir(exist_ok=True)
            shutil.copy(file, place / f"{file.stem}-checkpoint{file.suffix}")
        file.with_name(f"._{file.name}").write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        \xb6\xff")
    assert ids(kind, folder) == ids(kind, DATA / kind)


def test_a_folder_or_file_may_itself_be_hidden(tmp_path, kind):
    folder = tmp_path / ".cache" / ".data"
    shutil.copytree(DATA / kind, folder)
    assert ids(kind, folder) == ids(kind, DATA / kind)


@pytest.mark.parametrize(("path", "says"), [
    ("a" * 5000, "'aaaa.*aa...': cannot be read: File name too long"),
    ("a\0b", r"'a\\x00b': cannot be read: embedded null byte"), ("", "an empty path"), (" ", "an empty path"),
    ("~nobody-is-called-so/x", "cannot be read: Could not determine home directory")])
def test_a_path_that_is_none_is_one_line(kind, path, says):
    with pytest.raises(BenchmarkError, match=says) as refused:
        ids(kind, path)
    assert len(str(refused.value)) < 200
    assert "\n" not in str(refused.value)


def test_a_hidden_file_that_is_named_is_read(tmp_path):
    (tmp_path / ".one.jsonl").write_text('{"a": 1}\n')
    assert [row.fields for file in files_below(tmp_path / ".one.jsonl") for row in read_rows(file)] == [{"a": 1}]
    with pytest.raises(BenchmarkError, match=r"no \.parquet, \.jsonl, \.json file in it"):
        files_below(tmp_path)


def test_pages_of_a_novel_are_read_without_hidden_ones(tmp_path):
    for name in ("2.html", "1.html", "._1.html"):
        (tmp_path / name).write_text(f"<p>{name}</p>")
    assert paragraphs_of(tmp_path) == ["1.html", "2.html"]


@pytest.mark.parametrize(("content", "says"), [
    ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is given twice"), ('{"a": 1, "a": 1}', "the key 'a' is given"),
    ('{"a": ' + "[" * 100_000, "nested too deeply"), ('{"a": "\\ud83d"}', "surrogates not allowed"),
    ('{"a": ' + "9" * 5000 + "}", "4300 digits")])
@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_json_that_cannot_be_meant_is_refused(tmp_path, name, content, says):
    (tmp_path / name).write_text(content)
    with pytest.raises(BenchmarkError, match=rf"{name}(, line 1)?: .*{says}"):
        list(read_rows(tmp_path / name))


def test_a_parquet_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("ragbed.documents.rows._MAX_ROW_GROUP", 1_000_000)
    pyarrow.parquet.write_table(pyarrow.table({"question": ["a" * 1_000_000]}), tmp_path / "x.parquet")
    with pytest.raises(BenchmarkError, match=r"x\.parquet: a row group unpacks to more than 1,000,000 bytes"):
        list(read_rows(tmp_path / "x.parquet"))


def test_text_of_a_parquet_file_that_is_not_utf_8_is_refused(tmp_path):
    texts = pyarrow.array([b"fine", b"\xff\xfe"]).cast(pyarrow.string(), safe=False)
    pyarrow.parquet.write_table(pyarrow.table({"question": texts}), tmp_path / "x.parquet")
    with pytest.raises(BenchmarkError, match=r"x\.parquet: cannot be read as Parquet: 'utf-8' codec can't decode"):
        list(read_rows(tmp_path / "x.parquet"))
