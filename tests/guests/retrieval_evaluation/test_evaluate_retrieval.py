"""`ragbed evaluate-retrieval`: a run without a model, its table, TREC runs out and in, and what it refuses."""
import json
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, RR, R, nDCG

from ragbed.experiments import check_settings

DATA = Path(__file__).parents[2] / "data"
BEIR = str(DATA / "beir")
MEASURES = {nDCG @ 10: "ndcg@10", R @ 10: "recall@10", R @ 100: "recall@100", RR: "mrr", AP: "map"}


@pytest.fixture
def evaluate(ragbed, tmp_path):
    """The JSON of an evaluation, in a folder of the test's own."""
    def run(*words):
        return ragbed.json("evaluate-retrieval", *words, "--out", tmp_path / "runs")
    return run


def test_figures_are_those_of_ir_measures_over_the_runs_that_are_written(evaluate, tmp_path):
    made = evaluate("beir", BEIR, "--retriever", "bm25", "--retriever", "{kind: fused, name: both}", "-k", 4,
                    "--runs", tmp_path / "trec")
    assert [Path(file).name for file in made["runs"]] == ["bm25@4.run", "both.run"]
    qrels = {
        "1": {"4983": 1, "33370": 1}, "2": {"7912": 1}}
    for line, file in zip(made["lines"], made["runs"], strict=True):
        found = ir_measures.calc_aggregate(list(MEASURES), qrels, list(ir_measures.read_trec_run(file)))
        for measure, name in MEASURES.items():
            assert line["metrics"][name]["mean"] == pytest.approx(found[measure])
        qrels_of_ours = list(ir_measures.read_trec_qrels(made["qrels"]))
        assert ir_measures.calc_aggregate(list(MEASURES), qrels_of_ours, list(
            ir_measures.read_trec_run(file))) == pytest.approx(found)
        assert line["searching"]["chunks"] == 5
        assert line["timing"]["rate"] > 0
    assert [one["metric"] for one in made["comparisons"]] == ["ndcg@10"]


def test_run_files_have_the_scores_of_the_retriever(evaluate, ragbed, tmp_path):
    evaluate("beir", BEIR, "--retriever", "dense", "--retriever", "{kind: fused, of: [dense, bm25], method: "
             "reciprocal_rank, name: rrf}", "--runs", tmp_path / "trec")
    dense, rrf = ([line.split() for line in (tmp_path / "trec" / name).read_text().splitlines()]
                  for name in ("dense@100.run", "rrf.run"))
    assert dense[0][:4] == ["1", "Q0", "4983", "1"]
    assert float(dense[0][4]) == pytest.approx(0.7047, abs=1e-3)  # a cosine
    assert float(rrf[0][4]) == pytest.approx(1 / 61 + 1 / 62, abs=1e-6)  # first by one retriever, second by the other
    (line,) = ragbed.json("evaluate-retrieval", "--qrels", tmp_path / "trec" / "qrels.txt", "--run",
                          tmp_path / "trec" / "rrf.run")["lines"]
    assert line["metrics"]["ndcg@10"]["mean"] == 1


SMALL = "{kind: dense, build: {vectors: {kind: flat, codes: sq8}}}"


def test_the_build_of_a_retriever_acts_on_the_chunks_of_questions(evaluate, tmp_path):
    made = evaluate("beir", BEIR, "--retriever", "dense", "--retriever", "{kind: dense, build: {vectors: hnsw}}",
                    "--retriever", SMALL, "--retriever", "{kind: dense, build: {chunker: {kind: fixed, size: 40}}}",
                    "--retriever", "{kind: dense, build: {titled: true}}", "--runs", tmp_path / "trec")
    sizes = {line["name"]: (line["searching"]["chunks"], line["searching"]["memory"]) for line in made["lines"]}
    flat = 5 * 384 * 4
    assert sizes == {"dense@100": (5, flat), "dense@100 (vectors hnsw)": (5, flat + 5 * 272),
                     "dense@100 (vectors flat (codes sq8))": (5, 5 * 384),
                     "dense@100 (chunker fixed (size 40))": (11, 11 * 384 * 4), "dense@100 (titled True)": (5, flat)}
    for line in made["lines"]:
        assert line["searching"]["exact_recall"] == 1
        assert line["searching"]["cut"] == 10
        assert (line["timing"]["build"] is not None) == ("vectors" in line["name"])
        assert line["timing"]["vector_rate"] > 0
    whole, _, codes, cut, titled = ([line.split()[2:5] for line in Path(file).read_text().splitlines()]
                                    for file in made["runs"])
    assert len(set(map(str, (whole, codes, cut, titled)))) == 4
    assert [note for note in made["notes"] if "no difference" in note] == [
        "retriever: dense@100, dense@100 (vectors hnsw) and dense@100 (vectors flat (codes sq8)) made no difference: "
        "all 6 searches are identical"]


def test_a_chunker_that_makes_no_difference_is_told(evaluate):
    made = evaluate("beir", BEIR, "--retriever", "bm25", "--chunker", "{kind: fixed, size: 300}", "--chunker",
                    "{kind: recursive, size: 300}")
    assert "chunker made no difference: all 4 searches are identical" in made["notes"]
    made = evaluate("beir", BEIR, "--retriever", "bm25", "--chunker", "{kind: fixed, size: 40}", "--chunker",
                    "{kind: fixed, size: 300}")
    assert not any("no difference" in note for note in made["notes"])


@pytest.mark.parametrize(("words", "says"), [
    (["--retriever", "{kind: bm25, build: {vectors: hnsw}}"], ["build.vectors has no effect", "bm25"]),
    (["--retriever", "{kind: bm25, build: {embedder: all-MiniLM-L6-v2}}"], ["build.embedder has no effect"]),
    (["--retriever", "{kind: dense, index: idx, build: {titled: true}}"], ["the index idx keeps the settings"]),
    (["--retriever", "{kind: dense, index: idx, over: own}"], ["over: a search of the index idx covers all"]),
    (["--retriever", "{kind: dense, build: {formats: html}}"], ["unknown setting 'retriever.0.build.formats'"]),
    (["--retriever", "{kind: dense, build: {chunker: null}}"], ["build.chunker: the value is missing"]),
    (["--retriever", "{kind: dense, build: {vectors: {kind: milvus, uri: x.db}}}"], ["milvus needs an index"]),
    (["--retriever", "{kind: dense, build: {chunker: fixed}}", "--chunker", "sentences"],
     ["chunkers: they replace the build.chunker"]),
    (["--retriever", "bm25", "--embedder", "all-MiniLM-L6-v2"], ["embedders has no effect"]),
    (["--set", "formats=html"], ["formats has no effect, because no retriever builds an index"]),
])
def test_a_setting_that_cannot_act_is_refused(ragbed, tmp_path, words, says):
    ragbed.refuses("evaluate-retrieval", "beir", BEIR, *words, "--out", tmp_path, says=says)


def test_it_is_a_run_that_other_commands_read_and_that_goes_on(evaluate, ragbed, tmp_path):
    first = evaluate("beir", BEIR, "--retriever", "bm25", "--retriever", "dense")
    run = Path(first["run"])
    assert (run.parent, run.name[:-6]) == (tmp_path / "runs", "beir-retrieval-")
    for command in ("compare", "verify", "report"):
        status, _, err = ragbed(command, run)
        assert status == 0, err
    assert "searched" in ragbed("show", run, "1")[1]
    assert ragbed("export", run, tmp_path / "out.csv")[0] == 0
    again = evaluate("beir", BEIR, "--retriever", "bm25", "--retriever", "dense")
    assert again["run"] == first["run"] != evaluate("beir", BEIR, "--retriever", "bm25")["run"]
    assert (again["results"], again["lines"][0]["metrics"]) == (first["results"], first["lines"][0]["metrics"])
    assert ragbed("cassette", "export", run, "--out", tmp_path / "c.gz")[0] == 0
    status, _, err = ragbed("run", "--replay", tmp_path / "c.gz", "--out", tmp_path / "replayed")
    assert status == 0, err


@pytest.mark.slow
def test_shards_in_processes_are_merged_into_the_evaluation_that_was_never_divided(evaluate, ragbed, tmp_path):
    words = ["beir", BEIR, "--retriever", "bm25", "--retriever", "{kind: bm25, k: 2}", "--name", "divided"]
    merged = evaluate(*words, "--launcher", "local:2", "--runs", tmp_path / "trec")
    summary = Path(merged["run"], "summary.json")
    divided = summary.read_bytes()
    assert [Path(file).name for file in merged["runs"]] == ["bm25@100.run", "bm25@2.run"]
    assert ragbed("evaluate-retrieval", *words, "--shard", "1/2", "--out", tmp_path / "runs")[1].startswith("shard 1/2")
    whole = evaluate(*words, "--fresh")
    assert summary.read_bytes() == divided
    assert [line["metrics"] for line in merged["lines"]] == [line["metrics"] for line in whole["lines"]]
    ragbed.refuses("evaluate-retrieval", "--qrels", "q.tsv", "--shard", "1/2", says=["--qrels"])


def test_another_programs_run_stands_beside_with_the_same_tests(evaluate, tmp_path):
    other = tmp_path / "theirs.run"
    other.write_text("1 Q0 5836 1 9 x\n1 Q0 33370 2 8 x\n77 Q0 4983 1 1 x\n")
    made = evaluate("beir", BEIR, "--retriever", "bm25", "--run", other)
    assert [line["name"] for line in made["lines"]] == ["bm25@100", "theirs"]
    theirs = made["lines"][1]["metrics"]
    assert (theirs["recall@10"]["mean"], theirs["mrr"]["mean"]) == (0.25, 0.25)
    (one,) = made["comparisons"]
    assert (one["first"], one["second"], one["n"]) == ("bm25@100", "theirs", 2)
    assert "theirs ranks nothing for 1 of 2 questions, which score 0." in made["notes"]
    assert "1 queries of theirs are not questions here and are left out." in made["notes"]


def test_runs_alone_are_scored_by_qrels(ragbed, tmp_path):
    for name, line in (("a", "1 Q0 4983 1 1 x\n"), ("b", "1 Q0 5836 1 1 x\n2 Q0 7912 1 1 x\n")):
        (tmp_path / f"{name}.run").write_text(line)
    status, out, err = ragbed("evaluate-retrieval", "--qrels", DATA / "beir" / "qrels" / "test.tsv", "--run",
                              tmp_path / "a.run", "--run", tmp_path / "b.run")
    assert status == 0, err
    for said in ("test.tsv: retrieval scores", "a → b", "0.500"):
        assert said in out


def test_chunkers_and_retrievers_are_a_matrix(evaluate):
    made = evaluate("chunking_eval", str(DATA / "chunking_eval"), "--retriever", "bm25", "--retriever", "dense",
                    "--chunker", "{kind: fixed, size: 60}", "--chunker", "sentences", "-k", 5)
    assert len(made["lines"]) == 4
    by_chunks = {(line["searching"]["chunks"], round(line["searching"]["omega"], 6)) for line in made["lines"]}
    assert len(by_chunks) == 2
    for line in made["lines"]:
        assert line["metrics"]["char_precision@5"]["mean"] <= line["searching"]["omega"]


def test_retrievers_are_evaluated_on_a_file_of_questions_over_documents_or_an_index(evaluate, ragbed, tmp_path):
    (docs := tmp_path / "docs").mkdir()
    for name, text in (("pumps.txt", "The pump has a warranty of 36 months."), ("bread.txt", "Rye bread rests.")):
        (docs / name).write_text(text)
    (questions := tmp_path / "mine.csv").write_text(
        "question,answer,document\nHow long is the warranty of the pump?,36 months,pumps.txt\n")
    made = evaluate(questions, docs, "--retriever", "bm25", "-k", "1")
    assert [(line["name"], line["metrics"]["mrr"]["mean"]) for line in made["lines"]] == [("bm25@1", 1.0)]
    ragbed("index", docs, "--out", tmp_path / "idx", "--embedder", "none")
    over = evaluate(questions, "--retriever", f"{{kind: bm25, k: 1, index: {tmp_path / 'idx'}}}")
    assert over["lines"][0]["metrics"]["mrr"]["mean"] == 1.0
    assert sorted(path.name.rpartition("-")[0] for path in (tmp_path / "runs").iterdir()) == ["mine-retrieval"] * 2
    ragbed.refuses("evaluate-retrieval", questions, tmp_path / "idx", "--retriever", "bm25",
                   says=["an index, not a folder of documents"])


@pytest.mark.parametrize(("words", "says"), [
    ([], ["name a benchmark and its files"]),
    (["csv", "questions.csv", "-k", "3"], ["csv: neither a file nor a benchmark"]),
    (["beir"], ["beir: PATH is missing"]),
    (["beir", BEIR, "--retriever", "bm26"], ["bm26", "bm25"]),
    (["beir", BEIR, "--retriever", "{kind: bm25"], ["--retriever '{kind: bm25'"]),
    (["run.yaml", "-k", "5"], ["-k needs the name of a benchmark; set it in run.yaml instead"]),
    (["beir", BEIR, "--split", "dev"], ["qrels", "no dev.tsv"]),
    (["--qrels", "q.tsv"], ["--qrels scores TREC runs without searching; give --run FILE, and no BENCHMARK"]),
    (["beir", BEIR, "--qrels", "q.tsv", "--run", "r"], ["--qrels scores TREC runs without searching"]),
    (["beir", BEIR, "--run", "nowhere.run"], ["nowhere.run: cannot be read: No such file"]),
    (["beir", BEIR, "--run", "a/x.run", "--run", "b/x.run.gz"], ["--run: two files are called x"]),
])
def test_what_does_not_fit_is_one_line(ragbed, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text("benchmark: demo\n")
    ragbed.refuses("evaluate-retrieval", *words, says=says)


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"reasoning": ["search_only", "direct"]}, "move it to a separate run"),
    ({"reasoning": "search_only", "models": "openai:m"}, "search_only calls no model; remove models"),
    ({"reasoning": "search_only", "conditions": ["retrieved", "provided"]}, "measures searches only"),
    ({"reasoning": "search_only", "include": [{"models": "openai:m"}]}, "search_only calls no model"),
    ({"models": "none"}, "none works only with reasoning: search_only"),
])
def test_searching_and_asking_do_not_mix(ragbed, tmp_path, changes, complaint):
    given = {"name": "x", "benchmark": {"kind": "hotpotqa", "path": "p"}, **changes}
    (tmp_path / "run.json").write_text(json.dumps(given))
    ragbed.refuses("run", tmp_path / "run.json", says=[complaint])


def test_a_model_that_is_named_is_asked_though_the_benchmark_only_searches():
    given = {"name": "x", "benchmark": {"kind": "beir", "path": "p"}}
    assert check_settings(given, "x").only_searches
    assert [one.spec for one in check_settings({**given, "models": "openai:m"}, "x").reasoning] == ["direct"]
    given["benchmark"]["kind"] = "hotpotqa"
    searched = check_settings({**given, "reasoning": "search_only"}, "x")
    assert (searched.models, searched.conditions, searched.judge.name) == (["none"], ["retrieved"], "lexical")


def test_ask_refuses_a_strategy_that_gives_no_answer(ragbed):
    ragbed.refuses("ask", "Why?", "--index", "nowhere", "--reasoning", "search_only",
                   says=["search_only gives no answer"])
