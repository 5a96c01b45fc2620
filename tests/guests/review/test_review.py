"""What reviews say of a set, and how they are kept: figures by hand, files, and requests of the page."""
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from reviewed import ITEMS_MADE, MINUTES, serving, write_made_set

from ragbed.experiments.benchmarks.jsonl import load_demo, read_questions
from ragbed.experiments.guests.label_correction.agreement import krippendorff_alpha
from ragbed.experiments.guests.review.figures import (
    accepted_lines,
    compute_figures,
    describe_figures,
    finite_share_interval,
)
from ragbed.experiments.guests.review.item_view import item_view
from ragbed.experiments.guests.review.items import open_set
from ragbed.experiments.guests.review.reviews import Review, ReviewFile

ROOT = Path(__file__).parents[3]
ACCEPT, USELESS = Review(decision="accept"), Review(decision="reject", reason="not useful")
WRONG, EDITED = Review(decision="reject", reason="wrong answer"), Review(decision="accept", answers=("118",))


def kept(folder):
    """The reviews in a set's file, by reviewer and item."""
    file = ReviewFile(folder / "review.sqlite", open_set(str(folder)).items, reading=True)
    found = {name: {item: review for item, (_, review) in own.items()} for name, own in file.latest().items()}
    file.close()
    return found


def test_kappa_and_label_error_are_those_of_a_calculation_by_hand():
    # Of 10 reviewed by both: 6 accepted by both, 2 rejected by both, 1 by each alone: 0.8 agree; by chance
    # 0.7 x 0.7 + 0.3 x 0.3 = 0.58; (0.8 - 0.58) / 0.42
    ids = [f"{number:02}" for number in range(20)]
    first = dict(zip(ids, [ACCEPT] * 6 + [WRONG, USELESS] + [WRONG, ACCEPT], strict=False))
    second = dict(zip(ids, [ACCEPT] * 6 + [WRONG, USELESS] + [ACCEPT, WRONG], strict=False))
    found = compute_figures(ids, {"Ana": first, "Ben": second})
    (pair,) = found["agreement"]["pairs"]
    assert (pair["n"], pair["agree"], pair["kappa"]) == (10, 0.8, pytest.approx(0.22 / 0.42))
    assert (found["accepted"], found["rejected"], found["disputed"]) == (6, 2, 2)
    assert found["reasons"] == {"wrong answer": 1, "not useful": 1}
    assert (found["label_error"]["errors"], found["label_error"]["share"]) == (3, 0.3)  # one, and the two disputed
    assert found["label_error"]["random"]
    assert describe_figures(found)[0] == (
        "10 of 20 items reviewed by 2 people: 6 accepted, 2 rejected (wrong answer 1; "
                                      "not useful 1), 2 disputed.")
    assert not compute_figures(ids, {"Ana": {"00": ACCEPT, "19": ACCEPT}})["label_error"]["random"]


@pytest.mark.slow
def test_the_interval_is_of_a_finite_set():
    # 1 wrong of 3 drawn from 4: in all 1 (with 3/4 of the draws) or 2 (with 1/2) are wrong.
    assert finite_share_interval(1, 3, 4) == (0.25, 0.5)
    assert finite_share_interval(2, 50, 50) == (0.04, 0.04)
    # Clopper and Pearson of 1 in 30: 0.0008 to 0.1722
    assert finite_share_interval(1, 30, 1_000_000) == (pytest.approx(0.00084, abs=1e-5),
                                                       pytest.approx(0.17217, abs=1e-5))


def test_an_item_that_is_right_only_as_edited_is_an_error_of_the_set_and_is_kept():
    found = compute_figures(["a", "b", "c", "d"],
                            {"Ana": {"a": EDITED, "b": ACCEPT, "c": USELESS, "d": Review(note="hm")}})
    assert (found["reviewed"], found["accepted"], found["edited"], found["rejected"]) == (3, 2, 1, 1)
    assert describe_figures(found)[1] == "Label error: 33 % [25, 50] of 3 reviewed of 4."


def test_alpha_is_that_of_krippendorffs_example():
    # "Computing Krippendorff's Alpha-Reliability" (2011), section C: nominal, four observers, 0.743
    rows = [(1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None), (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
            (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None), (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None)]
    units = [[label for label in unit if label is not None] for unit in zip(*rows, strict=True)]
    assert krippendorff_alpha(units) == pytest.approx(0.743, abs=0.0005)
    assert krippendorff_alpha([["accept", "accept"], ["accept"]]) is None


def test_reviews_of_an_item_that_was_built_anew_do_not_count(tmp_path):
    folder = write_made_set(tmp_path / "set")
    file = ReviewFile(folder / "review.sqlite", open_set(str(folder)).items)
    assert file.put("Ana", "aster-4", 0, ACCEPT)
    assert file.put("Ana", "aster-2", 0, WRONG)
    file.close()
    assert kept(folder) == {"Ana": {"aster-2": WRONG, "aster-4": ACCEPT}}
    write_made_set(folder, (*ITEMS_MADE[:3], type(ITEMS_MADE[3])("aster-4", "Another question?", ("109",))))
    assert kept(folder) == {"Ana": {"aster-2": WRONG}}


def test_the_summary_stands_on_the_card_once_and_the_export_holds_what_was_accepted(tmp_path, ragbed):
    folder = write_made_set(tmp_path / "set")
    ragbed.refuses("review", folder, "--summary", says=["nothing has been reviewed yet"])
    file = ReviewFile(folder / "review.sqlite", open_set(str(folder)).items)
    for id, review in (("aster-1", ACCEPT), ("aster-2", WRONG), ("aster-3", ACCEPT), ("aster-4", EDITED)):
        assert file.put("Ana", id, 0, review)
    file.close()
    for _ in range(2):
        status, out, err = ragbed("review", folder, "--summary", "--export", tmp_path / "questions.jsonl")
        assert (status, err) == (0, "")
    assert out.splitlines()[:2] == [
        "4 of 4 items reviewed by 1 person: 3 accepted (1 with edits), 1 rejected (wrong answer 1).",
        "Label error: 50 % [50, 50] of 4 reviewed of 4."]
    assert (folder / "card.md").read_text().count("## Review") == 1
    assert "- Label error: 50 % [50, 50]" in (folder / "card.md").read_text()
    card = json.loads((folder / "card.json").read_text())
    assert card["kind"] == "crest"
    assert card["review"] == ragbed.json("review", folder, "--summary")
    first, third, fourth = read_questions(tmp_path / "questions.jsonl")
    assert (first.text, first.answers) == (ITEMS_MADE[0].question, ITEMS_MADE[0].answers)
    assert [gold.document for gold in first.gold] == ["reports/aster-2025.txt", "minutes/board-2025-07.html"]
    assert (third.id, third.answerable) == ("aster-3", False)
    assert fourth.answers == ("118",)


def test_questions_of_ones_own_are_reviewed_with_the_documents_that_they_name(ragbed, tmp_path):
    demo = open_set("demo")
    shown = item_view(demo.items["railway-edinburgh"], demo.documents)
    assert [one["source"] for one in shown["documents"]] == ["otterington-railway-station.html",
                                                             "east-coast-main-line.html"]
    assert "London" in shown["documents"][1]["pieces"][0]["text"]
    alone = open_set(str(ROOT / "experiments" / "data" / "demo" / "questions.jsonl"))
    assert alone.file.name == "questions.review.sqlite"
    assert item_view(alone.items["railway-edinburgh"], alone.documents)["documents"][0]["note"] == (
        "This document is not available.")
    accepted = accepted_lines(alone.items, {"Ana": dict.fromkeys(alone.items, ACCEPT)}, alone.documents)
    (tmp_path / "accepted.jsonl").write_text("\n".join(accepted))
    assert {one.id: one for one in read_questions(tmp_path / "accepted.jsonl")} == {
        one.id: one for one in load_demo().questions}
    ragbed.refuses("review", "nosuch", says=["nosuch: expected the folder of a set"])


def test_reviews_stay_with_and_without_the_index_and_candidates_become_gold_only_if_chosen(tmp_path, ragbed):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "terms.txt").write_text("The warranty lasts 24 months from delivery. Repairs take two weeks.")
    ragbed("index", pages, "--out", tmp_path / "idx", "--embedder", "none")
    span = {"document": "terms.txt", "format": "plain", "start": 0, "end": 43}
    lines = [{"id": "known", "question": "How long is the warranty?", "answer": "24 months", "gold_documents": [span]},
             {"id": "down", "question": "How long do repairs take?",
              "candidates": [span, {**span, "start": 44, "end": 67}]}]
    target = tmp_path / "asked.jsonl"
    target.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    reviewed = open_set(str(target), index=tmp_path / "idx")
    shown = item_view(reviewed.items["down"], reviewed.documents)
    assert shown["documents"] == []
    assert [one["text"] for one in shown["candidates"]] == [
        "The warranty lasts 24 months from delivery.", "Repairs take two weeks."]
    with closing(ReviewFile(reviewed.file, reviewed.items)) as file:
        file.put("Ana", "known", 0, ACCEPT)
        file.put("Ana", "down", 0, Review(decision="accept", answers=("two weeks",), evidence=(2,)))
    assert ragbed.json("review", target, "--summary")["stale"] == 0
    ragbed("review", target, "--export", tmp_path / "reviewed.jsonl")
    down, known = read_questions(tmp_path / "reviewed.jsonl")
    assert [(one.document, one.start, one.end) for one in (*known.gold, *down.gold)] == [
        ("terms.txt", 0, 43), ("terms.txt", 44, 67)]
    assert down.answers == ("two weeks",)


def test_evidence_in_html_is_shown_as_text_with_its_mark():
    (_, minutes) = item_view(ITEMS_MADE[0], {"minutes": MINUTES})["documents"]
    before, mark, after = minutes["pieces"]
    assert "| vessel | price \n| Cormorant | €410,000" in before["text"]
    assert mark == {"text": "The sale of the Cormorant to the Skell Rowing Club was approved", "mark": True}
    assert after["text"].startswith(" with four votes")


@pytest.mark.slow
def test_the_page_answers_its_own_requests_alone(tmp_path):
    folder = write_made_set(tmp_path / "set")
    with serving(folder) as (url, _), httpx2.Client() as client:
        page = client.get(url)
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
        assert client.get(f"{url}items").json()["items"][0]["decision"] == ""
        assert client.get(url, headers={"Host": "evil.example"}).status_code == 400
        assert client.get(f"{url.rsplit('/', 2)[0]}/guessed/items").status_code == 404
        body = {"reviewer": "Ana", "item": "aster-1", "seen": 0, "review": {"decision": "accept"}}
        assert client.post(f"{url}reviews", content=json.dumps(body)).status_code == 415
        assert client.post(f"{url}reviews", json={**body, "review": {"decision": "reject"}}).status_code == 422
        assert client.post(f"{url}reviews", json={**body, "item": "nosuch"}).status_code == 404
        chosen = {"decision": "accept", "answers": ["July"]}
        refused = client.post(f"{url}reviews", json={**body, "item": "aster-2", "review": chosen})
        assert refused.json() == {"error": "the answer has to be one of the options"}
        assert client.post(f"{url}reviews", json=body).json() == {"seen": 1}
        assert client.post(f"{url}reviews", json=body).status_code == 409
        assert client.get(f"{url}items", params={"reviewer": "Ben"}).json()["items"] == client.get(
            f"{url}items").json()["items"]


@pytest.mark.slow
def test_no_review_of_many_at_once_is_lost_and_a_kill_takes_none(tmp_path):
    folder = write_made_set(tmp_path / "set")
    with serving(folder, "--sample", 2) as (one, process), serving(folder) as (other, _), httpx2.Client() as client:
        def post(number):
            return client.post(f"{(one, other)[number % 2]}reviews", json={
                "reviewer": f"r{number // 4}", "item": f"aster-{number % 4 + 1}", "seen": 0,
                "review": {"decision": "accept", "note": str(number)}}).status_code

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(post, range(48))) == {200}
        process.kill()
    found = kept(folder)
    assert {review.note for own in found.values() for review in own.values()} == set(map(str, range(48)))
    with sqlite3.connect(folder / "review.sqlite") as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    file.close()
