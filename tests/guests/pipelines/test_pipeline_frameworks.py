"""Pipelines made with LangChain, LangGraph, Haystack and LlamaIndex, as users write them, in a run over real questions.
"""
import gc
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from calling import searching

DATA = Path(__file__).parent / "data"
_FILE = Path(__file__).parents[2] / "data" / "hotpotqa_195" / "hotpot_dev_distractor_v1.jsonl"
QUESTIONS = [json.loads(line) for line in _FILE.read_text().splitlines()[:4]]
SUMMER_WARS, GUEST, PAPERS, CREATURES = (row["_id"] for row in QUESTIONS)
FOUND = {SUMMER_WARS: [3, 4], GUEST: [], PAPERS: [2, 3], CREATURES: [1]}  # gold among four passages, by counts of words
NOTHING: dict[str, list[int]] = {question: [] for question in FOUND}

# The users' objects do not close their connections.
pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"),
              pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


def reply(body):
    """The answer, citing the passage that stands first."""
    asked = body["messages"][-1]["content"]
    return next((f"{row['answer']} [1]" for row in QUESTIONS if row["question"].strip() in asked), "no question")


@pytest.fixture
def run(tmp_path, ragbed, serve, monkeypatch):
    """Runs pipelines of a kind over four questions, and returns the results by pipeline and question."""
    pages = {title: "".join(sentences) for row in QUESTIONS for title, sentences in row["context"]}
    (tmp_path / "pages.jsonl").write_text("".join(
        json.dumps({"title": title, "text": text}) + "\n" for title, text in pages.items()))
    (tmp_path / "questions.json").write_text(json.dumps(QUESTIONS))
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)  # each test executes the files anew
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAGES", "pages.jsonl")
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "false")

    def start(kind, *factories, script=reply, calls=None, **settings):
        start.server = serve(script)
        monkeypatch.setenv("MODEL_URL", start.server.url)
        Path("frameworks.yaml").write_text(yaml.safe_dump({
            "concurrency": 4, "calls": {"calls": {"attempts": 2, "seconds": 60, **(calls or {})}},
            "benchmark": {"kind": "hotpotqa", "path": "questions.json"},
            "pipelines": [{"kind": kind, "name": one.partition(":")[2], "factory": one, **settings}
                          for one in factories]}))
        status, _, err = ragbed("run", "frameworks.yaml")
        assert status in (0, 1), err
        return results()

    yield start
    for name in [name for name in sys.modules if name.startswith("ragbed_plugin_")]:
        del sys.modules[name]


@pytest.fixture(autouse=True, scope="module")
def _collect_garbage():
    """Collect what the frameworks leave open while its warnings are ignored: once, since it takes seconds."""
    yield
    gc.collect()


def results():
    from ragbed.experiments import RunFolder

    cells = json.loads(Path("runs/frameworks/summary.json").read_text())["cells"]
    named = {row["id"]: row["model"].removeprefix("pipeline:") for row in cells}
    folder = RunFolder.existing(Path("runs/frameworks"))
    try:
        records = [one.model_dump()["result"] for one in folder.records(traces=True)]
    finally:
        folder.close()
    return {(named[one["cell"]], one["question"]): one for one in records}


def right(found, pipeline, tokens=700, cited=(1,)):
    """Whether each answer is right, cites what its pipeline says, and has its gold found; the places of the gold."""
    places = {}
    for row in QUESTIONS:
        one = found[pipeline, row["_id"]]
        assert (one["outcome"], one["scores"]["em"], one["cited"]) == ("answered", 1, cited), one
        assert (one["usage"]["prompt_tokens"], one["usage"]["completion_tokens"]) == (tokens, tokens // 700 * 12)
        places[row["_id"]] = [passage["number"] for passage in one["evidence"] if passage["gold"]]
    return places


@pytest.mark.slow
@pytest.mark.parametrize(("chains", "settings"), [
    ("chains.py:to_text chains.py:to_message chains.py:only_async", {}),
    ("chains.py:to_fields chains.py:structured", {"request": {"input": "{question}"}}),
    ("chains.py:only_sync", {"request": {"question": "{question}"}})])
def test_a_chain_answers_and_what_its_retriever_found_is_matched_with_the_gold(run, chains, settings):
    found = run("langchain", *chains.split(), **settings)
    for chain in chains.split():
        assert right(found, chain.partition(":")[2]) == FOUND


def test_the_evidence_of_a_reranking_retriever_is_what_it_kept(run):
    assert right(run("langchain", "chains.py:reranked"), "reranked") == {
        SUMMER_WARS: [1, 2], GUEST: [], PAPERS: [1], CREATURES: []}


def test_a_chain_with_named_inputs_gets_the_question_in_the_right_one(run):
    found = run("langchain", "chains.py:by_name")
    assert right(found, "by_name", cited=()) == NOTHING


def test_a_graph_answers_from_its_state_and_remembers_no_other_question(run):
    found = run("langgraph", "chains.py:graph", "chains.py:remembering")
    assert right(found, "graph") == {**FOUND, SUMMER_WARS: [3]}  # of the three that it kept
    assert {found["remembering", question]["text"] for question in FOUND} == {"1 message"}


def test_the_evidence_of_an_agent_is_what_it_looked_up_and_all_its_calls_count(run):
    def script(body):
        if body["messages"][-1]["role"] != "tool":
            return searching(body["messages"][-1]["content"])
        return reply({"messages": [body["messages"][-3]]})

    found = run("langgraph", "chains.py:agent", script=script)
    assert right(found, "agent", tokens=1400) == FOUND


@pytest.mark.slow
def test_a_haystack_pipeline_answers_with_its_documents(run):
    found = run("haystack", "haystack_pipelines.py:retrieving", "haystack_pipelines.py:answering",
                "haystack_pipelines.py:agent")
    places = {SUMMER_WARS: [3, 4], GUEST: [1], PAPERS: [1], CREATURES: [1, 4]}
    assert right(found, "retrieving") == right(found, "answering") == places
    assert found["retrieving", GUEST]["text"] == "You're Next [1]"
    assert found["answering", GUEST]["text"] == "You're Next"  # its builder cut the number out, and says what it cites
    assert right(found, "agent", cited=()) == NOTHING


def test_the_request_names_the_inputs_of_a_haystack_pipeline(run):
    found = run("haystack", "haystack_pipelines.py:retrieving", contexts="$.retriever.documents[:2]", request={
        "retriever": {"query": "{question}", "top_k": 3}, "prompt": {"question": "{question}"}})
    assert right(found, "retrieving") == {SUMMER_WARS: [], GUEST: [1], PAPERS: [1], CREATURES: [1]}


@pytest.mark.slow
def test_an_engine_of_llamaindex_answers_with_its_sources(run):
    found = run("llamaindex", *(f"llama_engines.py:{name}" for name in ("engine", "streaming", "citing", "chat")))
    for name in ("engine", "streaming", "citing", "chat"):
        assert right(found, name) == FOUND
    source, = (one for one in found["citing", CREATURES]["evidence"] if one["gold"])
    assert source["gold"] == "span"  # without the label that the engine puts before each of its sources
    asked = [sum(row["question"].strip() in json.dumps(body, ensure_ascii=False).replace('\\"', '"')
                 for row in QUESTIONS) for body, _ in run.server.requests]
    assert set(asked) == {1}  # no chat remembers another's question


@pytest.mark.slow
def test_an_engine_that_finds_nothing_refuses(run):
    found = run("llamaindex", "llama_engines.py:empty")
    assert {(one["outcome"], one["text"]) for one in found.values()} == {("refused", "Empty Response")}


@pytest.mark.parametrize(("kind", "factory", "said"), [
    ("langchain", "chains.py:failing", "ValueError: this chain knows no which"),
    ("haystack", "haystack_pipelines.py:failing", "PipelineRuntimeError: The following component failed"),
    ("llamaindex", "llama_engines.py:failing", "ValueError: this engine knows no which")])
def test_exceptions_and_missing_answers_are_one_line_failures(run, kind, factory, said):
    found = run(kind, factory)
    failures = {question: (one["failure"]["kind"], one["failure"]["message"]) for (_, question), one in found.items()}
    assert failures[SUMMER_WARS][0] == "pipeline"
    assert failures[SUMMER_WARS][1].startswith("failing: ")
    assert said in failures[SUMMER_WARS][1]
    assert "\n" not in failures[SUMMER_WARS][1]
    assert failures[CREATURES] == (
        "bad_response", "pipeline:failing: it returned no answer at $.answer")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "factory"), [
    ("langchain", "chains.py:to_text"), ("haystack", "haystack_pipelines.py:retrieving"),
    ("llamaindex", "llama_engines.py:engine")])
def test_questions_run_concurrently_retry_a_busy_model_and_stop_at_the_deadline(run, kind, factory):
    tries = []

    def script(body):
        said = reply(body)
        tries.append(said)
        if said.startswith("Summer") and tries.count(said) == 1:
            return {"status": 429, "error": {"message": "come back later"}, "headers": {"retry-after": "0"}}
        return {"text": said, "delay": 4 if said.startswith("Pavel") else 0.3}

    found = run(kind, factory, script=script, calls={"seconds": 3})
    outcomes = {question: one["failure"] and one["failure"]["kind"] for (_, question), one in found.items()}
    assert outcomes == {SUMMER_WARS: None, GUEST: None, PAPERS: "timeout", CREATURES: None}
    assert run.server.busiest > 1


@pytest.mark.slow
def test_a_replay_needs_no_framework_and_no_file(run, ragbed, tmp_path, monkeypatch):
    run("llamaindex", "llama_engines.py:engine")
    before = Path("runs/frameworks/summary.json").read_bytes()
    assert ragbed("cassette", "export", "runs/frameworks", "--out", "frameworks.gz")[0] == 0
    Path("llama_engines.py").unlink()
    script = ("import sys\nsys.modules['llama_index'] = None\nsys.argv[0] = 'ragbed'\n"
              "from ragbed.experiments.cli import main\nmain()")
    done = subprocess.run([sys.executable, "-c", script, "run", "--replay", "frameworks.gz", "--out", "again"],
                          capture_output=True, text=True, env={"PYTHONPATH": str(Path(__file__).parents[3])})
    assert done.returncode == 0, done.stderr
    assert next(Path("again").glob("*/summary.json")).read_bytes() == before


@pytest.mark.parametrize(("kind", "factory", "said"), [
    ("langchain", "chains.py:numbered", "TypeError: numbered() missing 1 required positional argument: 'documents'"),
    ("langchain", "chains.py:store", "AttributeError: 'InMemoryVectorStore' object has no attribute 'ainvoke'"),
    ("langchain", "chains.py:untold", "the inputs of chains.py:untold are unknown (Pydantic"),
    ("haystack", "chains.py:retriever", "AttributeError: 'VectorStoreRetriever' object has no attribute 'inputs'"),
    ("llamaindex", "llama_engines.py:index", "AttributeError: 'VectorStoreIndex' object has no attribute 'chat'"),
    ("llamaindex", "llama_engines.py:one_chat", "make llama_engines.py:one_chat a function that returns a new one")])
def test_an_object_of_another_kind_is_a_one_line_error(run, kind, factory, said):
    with pytest.raises(AssertionError) as error:
        run(kind, factory)
    assert f"ragbed: pipeline {factory.partition(':')[2]}: " in str(error.value)
    assert said in str(error.value)
