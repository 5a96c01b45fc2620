"""The chat page in a real Chromium: its title and examples, copies of answers, and the list of conversations."""
from dataclasses import replace

import pytest
from aster import BRIEF, FERRY, UNSAID, configurations, index_of_aster, model
from chromium import settle
from test_serving_in_chromium import ask

from ragbed.experiments.guests.operations.serve_settings import ServeSettings
from ragbed.experiments.guests.serving.state import PageSettings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of_aster(tmp_path_factory.mktemp("aster"))


def test_conversations_are_found_renamed_and_deleted(page_of, index):
    page = page_of(model, lambda url: configurations(index, url)[:1])
    for number in range(6):
        page.locator("#new").click()
        ask(page, f"{BRIEF} {number}" if number else FERRY)
    page.locator("#list li").nth(5).wait_for()
    page.get_by_label("Search conversations").fill("cormorant")
    assert page.locator("#list [data-thread]").all_inner_texts() == [FERRY]
    page.get_by_role("button", name=f"Rename “{FERRY}”").click()
    page.get_by_role("textbox", name="Rename the conversation").fill("The <b>Cormorant</b>")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="The <b>Cormorant</b>", exact=True).wait_for()
    again = page_of.opened(page.server)
    again.get_by_role("button", name="Delete “The <b>Cormorant</b>”").click()
    again.get_by_role("button", name="Cancel").click()
    assert again.locator("#list li").count() == 6
    again.get_by_role("button", name="The <b>Cormorant</b>", exact=True).click()
    again.locator(".turn").wait_for()
    again.get_by_role("button", name="Delete “The <b>Cormorant</b>”").click()
    again.locator("#change").get_by_role("button", name="Delete").click()
    again.locator("#list li").nth(5).wait_for(state="detached")
    assert again.locator(".turn").count() == 0
    assert "thread=" not in again.url


def test_examples_are_asked_with_a_click_and_answers_are_copied_with_their_sources(page_of, index):
    shown = PageSettings("Aster Ferries", (BRIEF, UNSAID))
    page = page_of(model, lambda url: configurations(index, url)[:1], page=shown,
                   permissions=["clipboard-read", "clipboard-write"])
    assert (page.title(), page.locator("#title").inner_text()) == ("Aster Ferries", "Aster Ferries")
    assert "cites" not in page.locator("#empty").inner_text()  # an answer may cite nothing
    settle(page, page.get_by_role("button", name=BRIEF).click)
    page.get_by_role("button", name="Copy with sources").click()
    page.locator("#said", has_text="Copied").wait_for(state="attached")
    text, _, sources = page.evaluate("navigator.clipboard.readText()").partition("\n\n")
    number = text.partition("[")[2].partition("]")[0]
    assert sources.startswith(f"[{number}] aster-2025.pdf, pages 2-3: {page.server}/documents/")
    assert page.get_by_role("button", name=f"Source {number} aster-2025.pdf, pages 2-3", exact=True).count() == 1
    settle(page, page.get_by_role("button", name="Ask again").click)
    assert page.locator(".turn .asked").all_inner_texts() == [BRIEF, BRIEF]


def test_an_answer_from_the_cache_is_marked(page_of, index):
    page = page_of(model, lambda url: [replace(configurations(index, url)[0], serve=ServeSettings(cache=60))])
    shown = []
    for _ in range(2):
        page.locator("#new").click()
        ask(page, BRIEF)
        shown.append(page.get_by_title("Show the trace").inner_text().partition(" · ")[0])
    assert shown == ["1 search", "stored answer"]
