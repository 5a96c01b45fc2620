"""Converters: what they write loads as the benchmark's own files do, is drawn by the seed alone, and hides nothing."""
import json
import sys

import pytest
from conversion import CREDITS, Draw, write_records
from convert import CONVERTERS, main
from convert_detectiveqa import read_novel

from ragbed.documents import BenchmarkError, UserError
from ragbed.experiments import BENCHMARKS


def made(folder, target, seed=0, limit=None, **sources):
    out = folder / f"{target}-{seed}-{limit}"
    write_records(target, CONVERTERS[target], {name: [path] for name, path in sources.items()}, Draw(seed, limit), out)
    return out


def loaded(target, folder):
    return BENCHMARKS[target].model_validate({"path": str(folder)}).load()


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def hotpotqa(tmp_path):
    """Eight questions, each with two paragraphs that are needed and eight that are not."""
    return lines(tmp_path / "hotpot.jsonl", *({
        "_id": f"q{number}", "question": f"Which colour has house {number}?", "answer": f"colour {number}",
        "type": "bridge", "level": "easy" if number == 0 else "hard",
        "supporting_facts": [[f"Needed {number}a", 0], [f"Needed {number}b", 0]],
        "context": [[title, [f"About {title} & more.", f" It has colour {number}." if title.endswith("a") else " No."]]
                    for title in (f"Needed {number}a", *(f"Other {number}-{at}" for at in range(8)),
                                  f"Needed {number}b")],
    } for number in range(8)))


def test_half_of_the_questions_lose_their_gold_and_all_keep_ten_chunks(tmp_path, hotpotqa):
    benchmark = loaded("crest", made(tmp_path, "crest", hotpotqa=hotpotqa))
    assert sorted(question.answerable for question in benchmark.questions) == [False] * 4 + [True] * 4
    for question in benchmark.questions:
        number = question.text.removesuffix("?").rpartition(" ")[2]
        titles = [benchmark.documents[chunk.document].source.removeprefix("hotpotqa/") for chunk in question.provided]
        assert len(titles) == len(set(titles)) == 10
        assert (f"Needed {number}a" in titles, f"Needed {number}b" in titles) == (question.answerable,) * 2
        assert [gold.chunk for gold in question.gold] == [
            chunk.id for chunk, title in zip(question.provided, titles, strict=True) if title.startswith("Needed")]
        assert titles[1:9] == [f"Other {number}-{at}" for at in range(8)]
        assert any(question.answers[0] in chunk.content for chunk in question.provided) == question.answerable
        assert question.tags["difficulty_type"] == ("SimpleQA" if number == "0" else "ComplexQA",)


def test_both_kinds_of_chunk_occur_and_html_is_escaped(tmp_path, hotpotqa):
    chunks = [chunk for question in loaded("crest", made(tmp_path, "crest", hotpotqa=hotpotqa)).questions
              for chunk in question.provided]
    assert {chunk.format for chunk in chunks} == {"html", "plain"}
    for chunk in chunks:
        html = chunk.format == "html"
        assert chunk.content.startswith("<h1>" if html else ("Needed", "Other"))
        assert (" &amp; more" if html else " & more") in chunk.content


def test_pages_of_the_same_field_stand_beside_a_korean_gold_page(tmp_path):
    folder = tmp_path / "korean"
    folder.mkdir()
    pages = [f"{field} - a.pdf - {page}" for field in ("law", "finance") for page in range(12)]
    told = {pages[5]: "모두 열 개다"}  # with a particle, the answer
    lines(folder / "ocr_corpus_v3.jsonl", *({"doc_id": page, "contents": f"{page} {told.get(page, '내용')}"}
                                            for page in pages))
    lines(folder / "qa_v4.jsonl", *({"qid": f"{at}_law", "query": "무엇?", "generation_gt": ["열 개"],
                                     "retrieval_gt": [[f"law - a.pdf - {at}"]]} for at in range(2)))
    answerable, lost = loaded("crest", made(tmp_path, "crest", korean=folder)).questions
    assert (answerable.answerable, lost.answerable, answerable.answers) == (True, False, ("열 개",))
    assert len(answerable.gold) == 1
    for question in (answerable, lost):
        assert len(question.provided) == 10
        assert all("law - a.pdf" in chunk.content for chunk in question.provided)
        assert not any("열 개" in chunk.content for chunk in question.provided)
        assert question.tags["language"] == ("ko",)


@pytest.fixture
def choices(tmp_path):
    """A source of each kind."""
    logic = tmp_path / "logic" / "MCQA" / "one"
    logic.mkdir(parents=True)
    (logic / "data_instances.json").write_text(json.dumps({"type": "t", "axiom": "a", "samples": [
        {"id": 1, "context": "All A are B.", "question": "So?", "answer": "choice_2",
         "choices": {"choice_1": "no A is B", "choice_2": "this A is B", "choice_3": "x", "choice_4": "y"}}]}))
    (tmp_path / "pubmedqa.json").write_text(json.dumps({"7": {
        "QUESTION": "Does it help?", "CONTEXTS": ["It was tried.", "It helped."], "final_decision": "yes"}}))
    (tmp_path / "morehopqa.json").write_text(json.dumps([{
        "_id": "m1", "question": "How many letters has the capital?", "answer": "4", "no_of_hops": 2,
        "answer_type": "number", "reasoning_type": "Symbolic", "context": [["Norway", ["Its capital is Oslo."]]],
        "question_decomposition": [
            {"sub_id": "1", "question": "Which land?", "answer": "Norway", "paragraph_support_title": "Norway"},
            {"sub_id": "2", "question": "Its capital?", "answer": "Oslo", "paragraph_support_title": ""},
            {"sub_id": "3", "question": "Letters?", "answer": "4", "paragraph_support_title": ""}]}]))
    return {
        "logicbench": tmp_path / "logic", "pubmedqa": tmp_path / "pubmedqa.json",
        "morehopqa": tmp_path / "morehopqa.json",
        "rgb": lines(tmp_path / "rgb.jsonl", *(
            {"id": at, "query": f"Who won {at}?", "answer": [[f"True {name}"]], "fakeanswer": f"False {name}",
             "positive": ["p"], "positive_wrong": [f"False {name} won."], "negative": []}
            for at, name in enumerate(("Ann", "Bob", "Cid")))),
        "cosmosqa": lines(tmp_path / "cosmos.jsonl", {
            "id": "c", "context": "It rained.", "question": "Why the umbrella?", "answer0": "sun", "answer1": "rain",
            "answer2": "wind", "answer3": "None of the above choices .", "label": "1"}),
        "clapnq": lines(tmp_path / "clapnq.jsonl", {
            "id": "n", "input": "How high is it?", "output": [{"answer": ""}],
            "passages": [{"title": "T", "text": "One. Two. Three. Four.",
                          "sentences": ["One.", "Two.", "Three.", "Four."]}]},
            {"id": "answered", "input": "?", "output": [{"answer": "Yes"}], "passages": []})}


def test_six_sub_tasks_of_mrceval_with_the_right_option_among_four(tmp_path, choices):
    questions = {question.tags["subtask"][0]: question for question in
                 loaded("mrceval", made(tmp_path, "mrceval", limit=1, **choices)).questions}
    right = {task: dict(question.options)[question.answers[0]] for task, question in questions.items()}
    name = right.pop("counterfactual").removeprefix("False ")
    assert right == {"logical": "this A is B", "domain": "yes", "multi-hop": "4", "commonsense": "rain",
                     "unanswerable": "The passage does not answer this question."}
    options = {task: {text for _, text in question.options} for task, question in questions.items()}
    assert options["multi-hop"] == {"4", "Oslo", "Norway", "None of the above"}
    assert options["domain"] == {"yes", "no", "maybe", "None of the above"}
    assert {f"True {name}", f"False {name}"} < options["counterfactual"]
    assert questions["counterfactual"].provided[0].content == f"False {name} won."
    assert all(len(texts) == 4 for texts in options.values())


def test_the_right_options_stand_at_every_letter(tmp_path, choices):
    path = lines(tmp_path / "many.jsonl", *({
        "id": str(at), "context": "It rained.", "question": "Why?", "answer0": "sun", "answer1": "rain",
        "answer2": "wind", "answer3": "snow", "label": "1"} for at in range(40)))
    questions = loaded("mrceval", made(tmp_path, "mrceval", cosmosqa=path)).questions
    assert {question.answers[0] for question in questions} == set("ABCD")


def test_musique_keeps_its_chain_with_placeholders_and_its_gold(tmp_path):
    rows = [{"id": f"2hop__{number}", "question": "Seat of the county of Hook?", "answer": "Stanley",
             "answer_aliases": [], "answerable": number != 1,
             "paragraphs": [{"idx": at, "title": title, "paragraph_text": f"{title} {at}.",
                             "is_supporting": at in (0, 2)}
                            for at, title in enumerate(("Hook", "Hook", "Stanley", "Oslo"))],
             "question_decomposition": [
                 {"id": 1, "question": "Hook >> county", "answer": "Mountrail", "paragraph_support_idx": 0},
                 {"id": 2, "question": "#1 >> capital", "answer": "Stanley", "paragraph_support_idx": 2}]}
            for number in range(2)]
    (question,) = loaded("mrke", made(tmp_path, "mrke", musique=lines(tmp_path / "m.jsonl", *rows))).questions
    assert (question.sub_questions, question.sub_answers) == (("Hook >> county", "#1 >> capital"),
                                                              ("Mountrail", "Stanley"))
    assert (question.tags["hops"], question.tags["type"]) == (("2",), ("bridge",))
    gold = {item.chunk for item in question.gold}
    assert [chunk.content for chunk in question.provided if chunk.id in gold] == [
        "Hook\nHook 0.", "Stanley\nStanley 2."]
    assert [chunk.content for chunk in question.provided] == ["Hook\nHook 0.", "Hook\nHook 1.", "Stanley\nStanley 2.",
                                                           "Oslo\nOslo 3."]


CASE = {"id": 5, "question": "What was odd?", "answer": 1,
        "options": ["The lock", "The umbrella", "The study", "Nothing"],
        "context": "Mr. Gray found the study locked. A wet umbrella stood inside. \"Odd,\" he said. It was dry there.",
        "clue_graph": {"evidence": "1. A wet umbrella stood inside -> Somebody came from rain.\n2. Zebras -> Africa",
                       "multi_hop_reasoning": "Together:\nSomebody came from rain + dry -> He came early."}}


def test_a_short_case_becomes_a_novel_of_a_page(tmp_path):
    nothing = {**CASE, "id": 6, "clue_graph": {"evidence": "Zebras -> Africa", "multi_hop_reasoning": ""}}
    path = lines(tmp_path / "cases.jsonl", CASE, nothing)
    out = made(tmp_path, "detectiveqa", detectbench=path)
    (question,) = loaded("detectiveqa", out).questions
    assert question.whole[0].content.splitlines() == [
        "Mr. Gray found the study locked.", "A wet umbrella stood inside.", '"Odd," he said.', "It was dry there."]
    assert (question.answers, dict(question.options)["B"]) == (("B",), "The umbrella")
    assert [step.depth is not None for step in question.steps] == [True, False, False]
    assert [chunk.content for chunk in question.pool if chunk.id == question.gold[0].chunk] == [
        "A wet umbrella stood inside."]
    assert question.about == "Case 5 of DetectBench"
    assert "1 left out: cases of DetectBench of which no clue was found in the text." in (out / CREDITS).read_text()


def test_the_novels_hold_every_quotation_before_the_answer(data, tmp_path):
    novels = sorted((data / "novels").glob("*.txt"))
    sources = {"novel": novels}
    write_records("detectiveqa", CONVERTERS["detectiveqa"], sources, Draw(), tmp_path / "d")
    questions = loaded("detectiveqa", tmp_path / "d").questions
    assert len(questions) == 12
    assert {question.about for question in questions} == {
        "The Hound of the Baskervilles by Arthur Conan Doyle", "The Mysterious Affair at Styles by Agatha Christie"}
    assert all(question.tags["clues"] == ("before",) for question in questions)
    assert {question.answers[0] for question in questions} == set("ABCD")
    assert not any("Gutenberg" in question.whole[0].content for question in questions)
    assert all(question.whole[0].content.lower().startswith("chapter") for question in questions)
    assert max(len(question.whole[0].content.split()) for question in questions) > 55_000


def test_other_novels_may_come_before(data, tmp_path):
    novels = data / "novels"
    sources = {"novel": [novels / "gutenberg_863_mysterious_affair_at_styles.txt"],
               "before": [novels / "gutenberg_2852_hound_of_the_baskervilles.txt", novels / "murder_on_the_links"]}
    write_records("detectiveqa", CONVERTERS["detectiveqa"], sources, Draw(limit=1), tmp_path / "d")
    (question,) = loaded("detectiveqa", tmp_path / "d").questions
    assert len(question.whole[0].content.split()) > 170_000
    assert min(step.depth for step in question.steps if step.depth is not None) > 0.6


def test_another_text_is_refused(tmp_path):
    for text, says in (("Nothing", "there are questions for The Hound of the Baskervilles and The Mysterious"),
                       ("The Hound of the Baskervilles", "START and END marks"),
                       ("The Hound of the Baskervilles\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\nHere.\n"
                        "*** END OF THIS PROJECT GUTENBERG EBOOK X ***", "another edition"),
                       ("The Hound of the Baskervilles\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\n"
                        "Chapter 1. Mr. Sherlock Holmes\n\nHere.\n*** END OF THIS PROJECT GUTENBERG EBOOK X ***",
                        "expected one paragraph with 'the boot which was abstracted in the hotel', found 0")):
        (tmp_path / "novel.txt").write_text(text)
        with pytest.raises(BenchmarkError, match=says):
            read_novel(tmp_path / "novel.txt")


def test_the_same_seed_gives_the_same_files_and_another_seed_others(tmp_path, hotpotqa, choices):
    for target, sources in (("crest", {"hotpotqa": hotpotqa}), ("mrceval", choices)):
        first, again, other = (made(tmp_path / name, target, seed, **sources)
                               for name, seed in (("a", 0), ("b", 0), ("c", 1)))
        assert contents(first) == contents(again)
        assert contents(first) != contents(other)


def test_the_limit_is_of_each_source_and_the_folder_says_what_it_is_made_of(tmp_path, choices):
    out = made(tmp_path, "mrceval", seed=3, limit=2, **choices)
    assert len(loaded("mrceval", out).questions) == 7  # three for rgb, of which two; one of each other
    credits = (out / CREDITS).read_text()
    assert "seed 3, at most 2 questions of each source" in credits
    assert all(source.licence in credits for source in CONVERTERS["mrceval"].sources.values())
    assert str(tmp_path) not in credits


@pytest.mark.parametrize(("sources", "says"), [
    ({"guess": "b"}, "'guess' is none of them"), ({"musique": "absent.jsonl"}, "absent.jsonl: no such file"),
    ({"musique": "list.json"}, "field id: expected text")])
def test_what_cannot_be_converted_is_said_and_nothing_is_written(tmp_path, sources, says):
    (tmp_path / "list.json").write_text('[{"other": 1}]')
    with pytest.raises(UserError, match=says):
        made(tmp_path, "mrke", **{name: tmp_path / path for name, path in sources.items()})
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_the_command_writes_into_a_new_folder_only(tmp_path, hotpotqa, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["convert.py", "crest", f"hotpotqa={hotpotqa}", "--out", str(tmp_path / "out"),
                                      "--limit", "6"])
    main()
    assert capsys.readouterr().out.startswith("6 questions in ")
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "something is there already" in capsys.readouterr().err


def test_real_data_becomes_records_that_load(data, tmp_path):
    crest = loaded("crest", made(tmp_path, "crest", hotpotqa=data / "hotpotqa" / "hotpotqa_100.json",
                                 korean=data / "korean_rag"))
    assert len(crest.questions) == 214
    assert sum(question.answerable for question in crest.questions) == 107
    assert all(len(question.provided) == 10 for question in crest.questions)
    mrceval = loaded("mrceval", made(
        tmp_path, "mrceval", limit=30, pubmedqa=data / "pubmedqa" / "ori_pqal.json", logicbench=data / "logicbench",
        morehopqa=data / "morehopqa" / "morehopqa_final_150samples.json", rgb=data / "rgb" / "en_fact.jsonl",
        cosmosqa=data / "cosmosqa" / "valid.jsonl", clapnq=data / "clapnq" / "clapnq_dev_unanswerable.jsonl"))
    assert len(mrceval.questions) == 180
    mrke = loaded("mrke", made(tmp_path, "mrke", musique=data / "musique" / "musique.jsonl"))
    assert len(mrke.questions) == 200
    assert all(len(question.gold) >= 2 and question.sub_answers[-1] for question in mrke.questions)
    cases = loaded("detectiveqa", made(tmp_path, "detectiveqa", limit=50,
                                       detectbench=data / "detectbench" / "test.jsonl"))
    assert len(cases.questions) == 50
    assert all(question.gold and question.steps for question in cases.questions)
