"""Every key of the settings' JSON Schema changes what is found, sent or recorded, or is refused, or only concerns how a
run is carried out. A new key fails the first test until it is listed here."""
import ast
import dataclasses
import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from ragbed.documents import SettingsError
from ragbed.experiments import Plan, check_settings
from ragbed.experiments.running.open_resources import open_searching
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.settings.file import settings_schema
from ragbed.experiments.settings.matrix import list_combinations
from ragbed.retrieval.pool import ScopedQuery
from ragbed.retrieval.vector_index import Flat, Hnsw
from ragbed.retrieval.vectors import VectorTask

TESTS = Path(__file__).parent
# What each key changes, by the class of the settings: the settings of a retriever before and after, over `CORPUS`.
BM25 = {"kind": "bm25"}
DENSE = {"kind": "dense"}
FUSED = {"kind": "fused"}
RANKS = {"kind": "fused", "method": "reciprocal_rank"}
EXPANDED = {"kind": "expanded", "of": "bm25", "build": {"chunker": {"kind": "fixed", "size": 30}}}
MMR = {"kind": "mmr", "of": "bm25"}
SECTIONS = {"kind": "sections", "target": 60, "largest": 90}
CREST = {"kind": "crest", "smallest": 100, "largest": 200}
SENTENCE = {"kind": "sentence", "model": "sentence-transformers/all-MiniLM-L6-v2"}


def cut(**chunker):
    return {"kind": "bm25", "build": {"chunker": chunker}}


FOUND = {
    "Bm25.language": (BM25, {**BM25, "language": "german"}), "Bm25.stemming": (BM25, {**BM25, "stemming": False}),
    "Bm25.stopwords": (BM25, {**BM25, "stopwords": False}), "Bm25.tokenizer": (
        {**BM25, "tokenizer": "words"}, {**BM25, "tokenizer": "bigrams"}),
    "Bm25.accents": ({**BM25, "accents": "kept"}, {**BM25, "accents": "folded"}),
    "Bm25.compounds": ({**BM25, "language": "german"}, {**BM25, "language": "german", "compounds": True}),
    "Bm25.method": (BM25, {**BM25, "method": "atire"}), "Bm25.k1": (BM25, {**BM25, "k1": 0.5}),
    "Bm25.b": (BM25, {**BM25, "b": 0.1}),
    "Bm25.delta": ({**BM25, "method": "bm25+"}, {**BM25, "method": "bm25+", "delta": 0.9}),
    "Fused.of": (FUSED, {**FUSED, "of": ["bm25", {"kind": "bm25", "k1": 0.1}]}),
    "Fused.method": (FUSED, RANKS), "Fused.constant": (RANKS, {**RANKS, "constant": 5}),
    "Fused.weights": (FUSED, {**FUSED, "weights": [1, 3]}), "Fused.depth": (FUSED, {**FUSED, "depth": 1}),
    "Expanded.of": (EXPANDED, {**EXPANDED, "of": {"kind": "bm25", "k1": 0.1}}),
    "Expanded.largest": (EXPANDED, {**EXPANDED, "largest": 100}),
    "Mmr.of": (MMR, {**MMR, "of": "dense"}), "Mmr.fetch": (MMR, {**MMR, "fetch": 1}),
    "Mmr.balance": (MMR, {**MMR, "balance": 0.1}), "Mmr.relevance": (MMR, {**MMR, "relevance": "score"}),
    "SearchSettings.k": (BM25, {**BM25, "k": 1}),
    "SearchSettings.where": (BM25, {**BM25, "where": 'title = "Reefs of Esk"'}),
    "SearchSettings.build": (DENSE, {**DENSE, "build": {"titled": True}}),
    "BuildSettings.embedder": (DENSE, {**DENSE, "build": {"embedder": {**SENTENCE, "query_prefix": "find: "}}}),
    "BuildSettings.chunker": (BM25, cut(kind="fixed", size=30)),
    "BuildSettings.vectors": (DENSE, {**DENSE, "build": {"vectors": {"kind": "flat", "codes": "sq8"}}}),
    "BuildSettings.titled": (BM25, {**BM25, "build": {"titled": True}}),
    "Sentence.query_prefix": (DENSE, {**DENSE, "build": {"embedder": {**SENTENCE, "query_prefix": "find: "}}}),
    "Sentence.passage_prefix": (DENSE, {**DENSE, "build": {"embedder": {**SENTENCE, "passage_prefix": "text: "}}}),
    "Fixed.size": (cut(kind="fixed", size=30), cut(kind="fixed", size=40)),
    "Fixed.overlap": (cut(kind="fixed", size=30), cut(kind="fixed", size=30, overlap=10)),
    "Recursive.size": (cut(kind="recursive", size=30), cut(kind="recursive", size=50)),
    "Recursive.overlap": (cut(kind="recursive", size=30), cut(kind="recursive", size=30, overlap=12)),
    "Recursive.separators": (cut(kind="recursive", size=60), cut(kind="recursive", size=60, separators=[","])),
    "Sections.target": (cut(**SECTIONS), cut(**{**SECTIONS, "target": 20})),
    "Sections.largest": (cut(**SECTIONS), cut(**{**SECTIONS, "target": 20, "largest": 40})),
    "Sentences.size": (cut(kind="sentences", size=30), cut(kind="sentences", size=200)),
    "Sentences.overlap": (cut(kind="sentences", size=90), cut(kind="sentences", size=90, overlap=60)),
}
REFUSED = {  # settings that cannot act, and what the refusal says
    "Bm25.delta": ({"retriever": {**BM25, "delta": 0.9}}, "the variant lucene does not use it"),
    "Fused.constant": ({"retriever": {**FUSED, "constant": 5}}, "weighted fusion does not use it"),
    "Nothing.long": ({"retriever": {**BM25, "build": {"embedder": {"kind": "none", "long": "truncated"}}}}, "long"),
    "Auto.memory": ({"retriever": {**BM25, "build": {"vectors": {"kind": "auto", "memory": "1GB"}}}}, "build.vectors"),
    "SearchSettings.index": ({"retriever": {"index": "idx"}, "conditions": ["closed-book"], "reasoning": "direct",
                              "models": "m"}, "index has no effect"),
    "RunSettings.formats": ({"formats": "html"}, "formats has no effect"),
    "RunSettings.chunkers": ({"chunkers": "fixed", "conditions": "closed-book", "reasoning": "direct", "models": "m"},
                             "chunkers has no effect"),
    "RunSettings.embedders": ({"retriever": BM25, "embedders": "all-MiniLM-L6-v2"}, "embedders has no effect"),
    "RunSettings.show": ({"show": "sub_questions"}, "show has no effect"),
    "RunSettings.questions": ({"questions": "lower_case", "limit": 1}, "questions has no effect"),
    "RunSettings.paraphraser": ({"paraphraser": "m"}, "no question is paraphrased"),
    **{f"RunSettings.{key}": ({key: value}, f"{key}: a run that only searches asks for no answers") for key, value in {
        "rules": "open", "layout": "as_published", "brief": True, "sub_answers": "none", "answer_formats": "json",
        "framings": "datamarked", "headers": True, "prompt_variants": [2], "languages": "auto", "prompts": "mine",
        "refusals": {"model": "m"}, "exemplars": "examples.jsonl", "probe": "citations",
        "judge": {"kind": "model", "model": "m"}, "judges": ["lexical", "m"], "support": "lexical"}.items()},
    "RunSettings.filled": ({"filled": "gold"}, "filled: "),
}
OPERATIONAL = {
    "RunSettings.allow": "who may read what is served", "RunSettings.name": "names the folder",
    "RunSettings.out": "the folder of runs",
    "RunSettings.concurrency": "how many questions at once", "SearchSettings.name": "a label in tables",
    "LocalSettings.threads": "speed of a local model", "LocalSettings.start_seconds": "a time limit",
    "CallLimits.seconds": "a time limit", "CallLimits.attempts": "retries", "CallLimits.concurrency": "calls at once",
    "Sentence.batch": "speed", "Sentence.backend": "speed; its identity is tested in test_embedder_backends",
    "Server.batch": "speed", "Server.concurrency": "speed", "Server.seconds": "a time limit",
    "External.seconds": "a time limit",
    "Server.attempts": "retries", "Hnsw.threads": "speed of building", "Milvus.uri": "where the vectors are",
    "Milvus.collection": "set by the build", "Milvus.sample": "set by the build",
    "BenchmarkSettings.path": "where the files are", "BenchmarkSettings.corpus": "where the pages are",
    "BenchmarkSettings.topics": "where the topics are", "Budget.dollars": "when the run stops",
    "Budget.tokens": "when the run stops", "Budget.seconds": "when the run stops",
    "PipelineSettings.concurrency": "questions at once", "PipelineSettings.key_variable": "where the key is",
    "PipelineSettings.url": "where the pipeline is", "CrossEncoding.precision": "speed",
    "LateInteraction.precision": "speed; its identity is tested in test_retriever_settings",
    "LateInteractionSearch.precision": "speed", "LateInteraction.keep": "memory and speed",
}
SELECTION = {"limit", "sample", "seed", "filter", "skip_bad"}
# Classes and keys whose effects other tests show, by file or folder. A test there names each key.
ELSEWHERE = {
    "RunSettings.benchmark": "test_benchmarks_contract", "RunSettings.models": "test_model_names",
    "RunSettings.pipelines": "guests/pipelines", "RunSettings.reasoning": "test_recipes",
    "RunSettings.retrieval": "test_conditions", "RunSettings.history": "test_history",
    "RunSettings.retriever": "test_retriever_settings", "RunSettings.conditions": "test_conditions",
    "RunSettings.perturbations": "test_conditions", "RunSettings.grader": "test_judgements",
    "RunSettings.repeats": "test_matrix", "RunSettings.scoring": "test_judging", "RunSettings.seed": "test_matrix",
    "RunSettings.unit": "test_units", "RunSettings.headline": "test_units",
    "RunSettings.exclude": "test_matrix", "RunSettings.include": "test_matrix",
    "RunSettings.serve": "guests/operations", "ServeSettings": "guests/operations",
    "RunSettings.race": "guests/early_stopping", "RunSettings.limits": "test_budget", "RunSettings.calls": "test_run",
    "RunSettings.cache": "guests/call_cache", "RunSettings.budget": "test_budget", "SearchSettings.over": "test_pool",
    "Limits": "test_graph", "Limits.max_tokens": "test_budget", "ModelSettings": "test_model_client",
    "Limits.tools": "test_tool_calls",
    "ModelSettings.local": "guests/local_models", "ModelSettings.models": "test_model_settings",
    "ModelConfig": "test_model_settings",
    "ModelSettings.prices": "test_budget",
    "LocalSettings": "guests/local_models", "Price": "test_run_figures", "Excluded": "test_matrix",
    "Included": "test_matrix", "Sentence": "test_embedder", "Static": "test_static_embedder",
    "Server": "test_server_embedder",
    "Server.query_prefix": "test_embedder_settings", "Server.passage_prefix": "test_embedder_settings",
    "Static.passage_prefix": "test_embedder_settings", "Sentence.normalise": "test_embedder_backends",
    **dict.fromkeys(("Sentence.query_prompt", "Sentence.passage_prompt", "Sentence.truncate_dim"),
                    "test_embedder_settings"),
    "Nothing": "test_nothing", "CrestSizes": "test_chunkers", "Flat": "test_vectors",
    "Auto": "test_vector_choice", "Hnsw": "test_vectors", "RaBitQ": "test_vectors",
    "Milvus": "guests/milvus", "Reranked": "test_reranked",
    "CrossEncoding": "test_cross_encoder", "LateInteraction": "guests/learned_retrievers",
    "JudgeReranker": "test_relevance_judge", "Grader": "test_judgements",
    "RubricJudge": "guests/own_judges", "PythonJudge": "guests/own_judges",
    "Grader.max_tokens": "test_relevance_judge", "ModelJudge": "test_judges",
    "ModelSupport": "guests/answer_support", "LexicalSupport": "guests/answer_support",
    "NliSupport": "guests/answer_support", "External": "guests/external_retrievers",
    "Sparse": "guests/learned_retrievers", "LateInteractionSearch": "guests/learned_retrievers",
    "Injection": "guests/injection", "RefusalModel": "guests/refusals", "CacheSettings": "guests/call_cache",
    "OwnMetric": "guests/own_metrics", "RunSettings.metrics": "guests/own_metrics",
    "MinedBenchmark": "guests/hard_negatives", "Computed": "guests/construct", "PipelineSettings": "guests/pipelines",
    **dict.fromkeys(("Crest", "Mrceval", "Mdbench", "DetectiveQa", "Mrke"), "guests/datasets"),
    "OwnQuestions": "test_own_questions", "QuestionFile": "guests/question_files",
    "BenchmarkSettings": "guests/datasets",
    **{f"BenchmarkSettings.{name}": "test_benchmarks_contract" for name in SELECTION},
}
FACTORS = {
    "answer_formats": ["tags", "json"], "chunkers": ["fixed", "sentences"], "conditions": ["retrieved", "gold"],
    "embedders": ["all-MiniLM-L6-v2", "BAAI/bge-small-en-v1.5"], "formats": ["plain",
    "html"], "framings": ["delimited", "datamarked"], "headers": [False, True], "languages": ["english", "auto"],
    "history": ["rewrite", "window"], "models": ["a", "b"], "perturbations": ["none", "shuffle"],
    "prompt_variants": [1, 2], "prompts": ["default", "mine"],
    "questions": ["as_asked", "keywords"], "reasoning": ["direct", "chain_of_thought"],
    "retrieval": ["once", "hyde"], "retriever": ["dense", "bm25"], "rules": ["grounded", "open"], "seed": [0, 1],
    "show": ["question", "sub_questions"]}
PIPELINES = ("ChatCompletions", "Command", "Haystack", "Http", "LangChain", "LangGraph", "LlamaIndex", "Predictions",
             "Python")


def schema_keys():
    """Each key with the class of its settings, as `Fused.weights`."""
    schema = settings_schema()
    for name, model in [("RunSettings", schema), *schema["$defs"].items()]:
        short = name.rpartition("__")[2]
        keys = {key for key, field in model.get("properties", {}).items()
                if key != "kind" and not (key == "model" and "const" in field)
                and not str(field.get("description")).startswith("Same as")}
        if short.endswith("_strategy"):
            continue  # parameters of recipes, which test_recipes checks
        searched = {"name", "k", "index", "over", "build", "where"} if "retrievers__" in name else set()
        for key in sorted(keys):
            owner = "SearchSettings" if key in searched else short
            yield f"{owner}.{key}", keys


def owner_of(key, keys):
    owner, _, name = key.partition(".")
    if owner in ("Excluded", "Included") and name in FACTORS:
        return f"Factors.{name}"
    if keys >= SELECTION and (owner not in ELSEWHERE or name in {*SELECTION, "path", "corpus"}):
        return f"BenchmarkSettings.{name}"
    return f"PipelineSettings.{name}" if owner in PIPELINES else key


@pytest.mark.parametrize("name", FACTORS)
def test_each_factor_can_be_excluded_and_included(name):
    def cells(**settings):
        return [dataclasses.astuple(one) for one in list_combinations(check_settings({
            "name": "x", "benchmark": {"kind": "beir", "path": "x"}, "models": "m", "reasoning": "direct",
            "conditions": "retrieved", "retriever": "dense", **settings}, "x.yaml"))]

    first, second = FACTORS[name]
    both = cells(**{name: [first, second]})
    label, more = {"retriever": ("bm25@5", {"kind": "bm25"}), "embedders": ("bge-small-en-v1.5", "")}.get(
        name, (second, second))
    assert (len(both), cells(**{name: [first, second], "exclude": {name: [label]}})) == (2, both[:1])
    if name not in ("chunkers", "embedders"):  # an entry of `include` cannot have them
        assert cells(**{name: [first], "include": {name: [more]}}) == both


def test_every_key_of_the_schema_is_listed():
    known = {*FOUND, *REFUSED, *OPERATIONAL, *ELSEWHERE,
             *(f"Factors.{name}" for name in FACTORS)}
    keys = {owner_of(key, keys) for key, keys in schema_keys()}
    assert {key for key in keys if key not in known and key.partition(".")[0] not in ELSEWHERE} == set()
    assert {key for key in {*FOUND, *REFUSED, *OPERATIONAL} if key not in keys} == set()  # no key that is gone
    assert all(OPERATIONAL.values())


@functools.cache
def words_of_tests(place):
    """The words of each test function in a file or a folder of tests, with its decorators and the functions, fixtures
    and constants of the file that it names."""
    found = []
    for file in sorted((TESTS / place).rglob("*.py")) if (TESTS / place).is_dir() else [TESTS / f"{place}.py"]:
        text = file.read_text(encoding="utf-8")
        parts = {}
        for node in ast.parse(text).body:
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            names = [node.name] if hasattr(node, "name") else [
                one.id for one in getattr(node, "targets", ()) if isinstance(one, ast.Name)]
            words = set(re.findall(r"\w+", "\n".join(text.splitlines()[first - 1:node.end_lineno])))
            parts |= dict.fromkeys(names, words)
        for name, words in parts.items():
            if name.startswith("test"):
                found.append(words.union(*(parts[word] for word in words & {*parts} if not word.startswith("test"))))
    return found


def test_a_test_of_the_named_file_sets_or_checks_each_key_that_is_shown_elsewhere():
    missing = []
    for key, keys in schema_keys():
        owner, _, name = (one := owner_of(key, keys)).partition(".")
        place = ELSEWHERE.get(one) or ELSEWHERE.get(owner)
        if place and one not in {*FOUND, *REFUSED, *OPERATIONAL} and not any(
                name in words for words in words_of_tests(place)):
            missing.append(f"{key}: no test in {place}")
    assert missing == []


CORPUS = [
    ("d1", "Reefs of Esk", "The northern reefs grew, and reefs grow slowly. The café is by the reef, and the ferry to "
                           "the reef is slow. Reefs are old."),
    ("d2", "Versicherung", "Die Krankenversicherung zahlt, und eine Versicherung ist gut. Der Hund zahlt nicht, die "
                           "Häuser auch nicht."),
    ("d3", "한강", "서울의 한강공원에는 다리가 많다. 강은 넓고 다리는 길다."),
    ("d4", "Ferries", "A cafe opened in 1990. A ferry crosses the sound, four times a day. The reef grows."),
    ("d5", "Reefs of Lund", "No growth of the southern reef was measured. Was it the ferry, or was it the old reef?"),
]
QUERIES = {"1": "how the reefs are growing by the ferry", "2": "Versicherung für Hunde, cafe", "3": "한강 다리"}
GOLD = {"1": "d1", "2": "d2", "3": "d3"}


@pytest.fixture(scope="module")
def beir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beir")
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text("".join(
        json.dumps({"_id": id, "title": title, "text": text}) + "\n" for id, title, text in CORPUS))
    (folder / "queries.jsonl").write_text("".join(
        json.dumps({"_id": id, "text": text}) + "\n" for id, text in QUERIES.items()))
    (folder / "qrels" / "test.tsv").write_text("".join(f"{query}\t{id}\t1\n" for query, id in GOLD.items()))
    return folder


def read(beir, limit=None, **settings):
    return check_settings({"name": "x", "benchmark": {"kind": "beir", "path": str(beir), "limit": limit},
                           "reasoning": "search_only", **settings}, "x.yaml")


def test_each_key_of_a_search_changes_what_is_found(beir):
    every = sorted({json.dumps(one) for pair in FOUND.values() for one in pair})
    plan = Plan.of(read(beir, retriever=[{"k": 9, **json.loads(one), "name": one} for one in every]))
    resources = Resources(plan)
    open_searching(plan, resources, lambda stage, done, total: None)
    found = {}
    for name, pooled in resources.pools.items():
        asked = [ScopedQuery("shared", text) for text in QUERIES.values()]
        found[name] = [[(hit.chunk.id, hit.chunk.content, hit.score) for hit in hits]
                       for hits in pooled.searcher.retriever.search(asked, pooled.searcher.k)]
        pooled.searcher.close()
    assert [key for key, pair in FOUND.items() if found[json.dumps(pair[0])] == found[json.dumps(pair[1])]] == []


ANSWERED = {"reasoning": "direct", "models": "m"}
PLACED = {"conditions": "gold", **ANSWERED}
BLIND = {"conditions": "closed-book", **ANSWERED}
IDLE = {  # settings that act under another condition, or with another strategy
    "retrieval under gold": ({**PLACED, "retrieval": "hyde"}, "retrieval has no effect, because no cell searches"),
    "several under gold": ({**PLACED, "retrieval": ["once", "hyde"]}, "retrieval has no effect"),
    "grader under gold": ({**PLACED, "grader": {"model": "m", "depth": 3}}, "grader has no effect"),
    "variants": ({**PLACED, "reasoning": "self_ask", "prompt_variants": [2]}, "prompt_variants has no effect, because"),
    "retriever": ({**BLIND, "retriever": BM25}, "retriever bm25@5 has no effect, because no cell searches"),
    "k": ({**BLIND, "retriever": {**DENSE, "k": 3}}, "retriever dense@3 has no effect"),
    **{f"{key}, search_only": ({"reasoning": "search_only", "retrieval": "hyde", "models": "m", key: value},
                               f"{key} has no effect, because ") for key, value in {
        "rules": "open", "brief": True, "judges": ["lexical", "m"], "support": "lexical"}.items()},
    **{f"{key}, closed-book": ({**BLIND, key: value}, f"{key} has no effect, because ") for key, value in {
        "retrieval": "hyde", "rules": "open", "perturbations": "shuffle", "framings": "datamarked", "headers": True,
        "languages": "auto", "probe": "citations", "refusals": {"model": "m"}}.items()},
}
ACTING = {  # the same settings beside a cell in which they act
    "retrieval": {"retrieval": "hyde", "conditions": ["gold", "retrieved"]},
    "included": {"retrieval": "hyde", "conditions": "gold", "include": {"conditions": "retrieved"}},
    "perturbations": {"perturbations": ["none", "shuffle"], "conditions": ["closed-book", "retrieved"]},
    "k": {"retriever": {**DENSE, "k": 3}, "conditions": ["closed-book", "retrieved"]},
}


@pytest.mark.parametrize(("settings", "says"), [*REFUSED.values(), *IDLE.values()], ids=[*REFUSED, *IDLE])
def test_what_acts_in_no_cell_is_refused(beir, settings, says):
    with pytest.raises(SettingsError) as refused:
        Plan.of(read(beir, **settings))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("settings", ACTING.values(), ids=list(ACTING))
def test_what_acts_in_one_cell_is_accepted(beir, settings):
    assert Plan.of(read(beir, **ANSWERED, **settings)).cells


@pytest.mark.parametrize(("before", "after"), [
    (Flat(), Flat(codes="sq8")),
    (Hnsw(neighbours=4, ef_build=8, ef_search=4), Hnsw(neighbours=8, ef_build=8, ef_search=4)),
    (Hnsw(neighbours=4, ef_build=8, ef_search=4), Hnsw(neighbours=4, ef_build=80, ef_search=4)),
    (Hnsw(neighbours=4, ef_build=8, ef_search=4), Hnsw(neighbours=4, ef_build=8, ef_search=40)),
    (Hnsw(neighbours=4, ef_build=8, ef_search=4), Hnsw(neighbours=4, ef_build=8, ef_search=4, codes="sq8")),
], ids=["Flat.codes", "Hnsw.neighbours", "Hnsw.ef_build", "Hnsw.ef_search", "Hnsw.codes"])
def test_each_key_of_a_vector_index_changes_what_is_found(before, after, tmp_path):
    numbers = np.random.default_rng(3).normal(size=(4000, 24)).astype(np.float32)
    vectors = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    one, other = (kind.build(VectorTask(vectors, "", tmp_path, "made", None, lambda more: None)).search(
        vectors[:30] + 0.1, 10) for kind in (before, after))
    assert one[0].tobytes() != other[0].tobytes()
