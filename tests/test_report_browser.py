"""The report's question browser in a real Chromium: filters with their counts, addresses, answers side by side."""
import pytest
from chromium import SETTLED, opened, settle, shown
from report_runs import Run, shop


@pytest.fixture(scope="module")
def shop_url(tmp_path_factory):
    return shop().write(tmp_path_factory.mktemp("shop")).as_uri()


@pytest.fixture(scope="module")
def open_page(browser, shop_url):
    page = browser.new_page()
    page.goto(shop_url)
    page.wait_for_selector(SETTLED, state="attached")
    return page


@pytest.fixture
def page(open_page):
    """A page without a filter, which many tests share."""
    if open_page.is_enabled("#clear"):
        settle(open_page, lambda: open_page.click("#clear"))
    return open_page


@pytest.mark.parametrize(("wanted", "left"), [
    ({"outcome": "error"}, [3]), ({"outcome": "refused"}, [3, 4]), ({"outcome": "malformed"}, [6]),
    ({"grade": "Correct"}, [1, 2, 5]), ({"grade": "Partially Correct"}, [6]), ({"cause": "right"}, [1, 2, 4, 5]),
    ({"cause": "right", "cell": "2"}, [2, 5]), ({"cell": "3"}, [1, 3, 4, 5, 6]), ({"tag": "type: person"}, [2]),
    ({"answerable": "no"}, [4]), ({"agree": "differ"}, [1, 2, 4]), ({"agree": "right"}, [5]),
    ({"agree": "wrong"}, [3, 6]), ({"right": "1", "wrong": "2"}, [1, 4]), ({"right": "2", "wrong": "1"}, [2]),
    ({"outcome": "answered", "grade": "Wrong"}, [1, 2, 3, 4, 6]), ({"order": "hardest"}, [3, 6, 2, 1, 4, 5])])
def test_a_filter_leaves_what_fits(page, wanted, left):
    for name, value in wanted.items():
        settle(page, lambda name=name, value=value: page.locator(f"[name={name}]").evaluate(
            "(box, value) => { box.value = value; box.dispatchEvent(new Event('input', {bubbles: true})); }", value))
    assert shown(page) == left
    assert page.inner_text("#count") == f"{len(left)} of 6 questions"


@pytest.mark.parametrize(("text", "left"), [
    ("CAPITAL?", [1]), ("zanzibar", [1]), ("mount everett", [6]), ("nile", [5]), ("type: person", [2]), ("absent", []),
    ("Lyon [2]", [1]), ("http_500", [3])])
def test_a_text_is_found_in_questions_answers_and_passages(page, text, left):
    settle(page, lambda: page.fill("[name=text]", text))
    assert shown(page) == left
    assert page.locator("#nothing").is_visible() == (not left)


def test_choices_say_how_many_questions_they_would_leave(visit, shop_url):
    page = visit(shop_url)
    page.click("#more-filters > summary")
    choices = page.locator("[name=outcome] option").all_inner_texts()
    assert sorted(choices) == ["answered (6)", "any", "error (1)", "malformed (1)", "missing (1)", "refused (2)"]
    settle(page, lambda: page.select_option("[name=right]", "1"))
    assert sorted(page.locator("[name=outcome] option:not([disabled])").all_inner_texts()) == [
        "answered (3)", "any", "refused (1)"]
    assert page.locator("[name=wrong] option").all_inner_texts()[1:] == ["1 direct (0)", "2 draft (2)", "3 plan (0)"]


@pytest.mark.slow
def test_an_address_opens_the_same_view(visit, shop_url):
    page = visit(shop_url)
    settle(page, lambda: page.fill("[name=text]", "capital"))
    page.click("#more-filters > summary")
    settle(page, lambda: page.select_option("[name=agree]", "differ"))
    opened(page, 1)
    assert page.url.endswith("#questions?text=capital&agree=differ&open=capital")
    again = visit(page.url)
    again.locator(".question[open] .cards").wait_for()
    assert [again.input_value(f"[name={name}]") for name in ("text", "agree")] == ["capital", "differ"]
    assert shown(again) == [1]
    assert again.evaluate("document.activeElement.parentElement.dataset.question") == "0"


def test_a_link_from_a_chart_sets_the_filter_of_a_page_that_is_open(visit, shop_url):
    page = visit(shop_url)
    settle(page, lambda: page.evaluate("location.hash = '#questions?cell=2&cause=failed'"))
    assert (shown(page), page.input_value("[name=cause]")) == ([3], "failed")
    settle(page, lambda: page.click("#clear"))
    assert (shown(page), page.url.partition("#")[2]) == ([1, 2, 3, 4, 5, 6], "questions")


def test_a_question_that_does_not_fit_the_filter_of_its_address_is_there_all_the_same(visit, shop_url):
    page = visit(f"{shop_url}#questions?outcome=error&open=river")
    assert shown(page) == [5, 3]
    assert page.inner_text("#count") == "1 of 6 questions"


@pytest.mark.slow
def test_answers_stand_side_by_side_with_what_became_of_them(visit, shop_url):
    row = opened(visit(shop_url), 1)
    assert row.locator(".card h4").all_inner_texts() == ["1 direct", "2 draft", "3 plan"]
    assert row.locator(".card .badges").nth(1).inner_text().split("\n") == [
        "✗ wrong", "reasoning error"]
    assert [text.split() for text in row.locator(".cites").all_inner_texts()] == [["cites", "[7]", "not", "shown"]]
    assert row.locator(".answer").all_inner_texts() == ["Paris [1]", "Lyon [2] [7]", "Paris"]
    assert row.locator(".unshown").all_inner_texts() == ["7", "[7] not shown"]
    missing = opened(visit(shop_url), 2).locator(".card").nth(2)
    assert "no record of this question" in missing.inner_text()


def test_evidence_says_who_cited_it_and_what_is_gold(visit, shop_url):
    row = opened(visit(shop_url), 1)
    heads = [" ".join(text.split()) for text in row.locator(".passage > summary").all_inner_texts()]
    assert heads == ["[1] gold.html pages 3 to 4, characters 1,200 to 1,370 gold by chunk cited by 1",
                     "[2] pages/2.html pages 3 to 4, characters 1,200 to 1,286 cited by 2"]
    assert row.locator("mark.gold-text").all_inner_texts() == ["Paris", "Paris"]


def test_a_citation_leads_to_the_passage_that_it_names(visit, shop_url):
    page = visit(shop_url)
    row = opened(page, 1)
    row.locator(".passage > summary").nth(1).click()
    row.locator(".answer .cite").nth(1).click()
    assert row.locator(".passage").nth(1).evaluate("passage => passage.open")
    assert page.evaluate("document.activeElement.parentElement.dataset.place") == "1"


def test_filters_of_second_rank_are_a_click_away_and_open_where_the_address_uses_one(visit, shop_url):
    page = visit(shop_url)
    visible = "boxes => boxes.filter((box) => box.checkVisibility()).map((box) => box.name)"
    assert page.locator("#filter [name]").evaluate_all(visible) == ["text", "outcome", "cause", "cell"]
    again = visit(f"{shop_url}#questions?order=hardest")
    assert "order" in again.locator("#filter [name]").evaluate_all(visible)
    assert again.inner_text("#more-filters > summary") == "More filters, 1 in use"


def test_paper_has_the_first_five_open_and_more_as_lines(visit, shop_url):
    page = visit(shop_url)
    page.wait_for_selector("html[data-printable]", state="attached")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".question[open]").count() == 5
    assert page.locator("#printed").text_content() == (
        "6 of 6 questions; the first 5 are printed open, 6 as lines.")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".question[open]").count() == 0


def test_a_long_list_says_what_the_browsers_own_search_misses_and_arrows_reach_its_end(visit, tmp_path):
    run = Run("direct")
    for number in range(70):
        run.ask(f"q{number}")
    page = visit(run.write(tmp_path).as_uri())
    assert page.inner_text("#part") == (
        "The first 60 are listed. The browser's own search (Ctrl-F) sees only these; the field Text searches all.")
    page.locator(".question > summary").nth(59).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.dataset.question") == "60"
    assert len(shown(page)) == 70
    assert not page.locator("#part").is_visible()


def test_the_prompt_is_shown_as_it_was_sent(visit, shop_url):
    row = opened(visit(shop_url), 1)
    row.locator(".trace > summary").first.click()
    row.locator(".part > summary").first.click()
    run = shop()
    assert row.locator(".part .prompt").first.text_content() == run.prompt(*run.records[0].result.evidence)
    assert row.locator(".prompt .piece.cited.is-gold").count() == 1
    assert row.locator(".message .role").all_inner_texts() == ["user", "reply"]


def test_it_works_by_keyboard_alone(visit, shop_url):
    page = visit(shop_url)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # skips to the questions
    page.wait_for_function("document.activeElement.id === 'questions'")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "text"
    settle(page, lambda: page.keyboard.type("which"))
    page.locator(".question > summary").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".question[open] .cards").wait_for()
    assert page.locator(".question[open]").get_attribute("data-question") == "3"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Next →"
    page.keyboard.press("Enter")
    page.locator('.question[data-question="4"] .cards').wait_for()
    assert page.evaluate("document.activeElement.parentElement.dataset.question") == "4"
    assert page.locator(".question[open]").count() == 1


def test_what_is_left_out_is_said_where_it_would_stand(visit, tmp_path):
    row = opened(visit(shop().write(tmp_path, budget=1).as_uri()), 1)
    row.locator(".trace > summary").first.click()
    row.locator(".trace .cut").first.wait_for()
    assert row.locator(".passage .cut").first.text_content().startswith("Left out")


def test_html_is_shown_as_it_reads_and_as_the_model_saw_it(visit, tmp_path):
    html = ("<h2>Sales &amp; more</h2><table><tr><th>Segment</th><th>2022</th></tr><tr><td>유럽</td><td>1 &lt; 2"
            "</td></tr></table><script>alert(1)</script><p style='x'>a&#x202e;b</p><!-- gone -->")
    run = Run("direct")
    run.ask("q")
    run.answer("direct", "q", "x [1]", 0.0, (run.passage(1, html, format="html"),), cited=(1,))
    passage = opened(visit(run.write(tmp_path).as_uri()), 1).locator(".passage")
    assert passage.locator(":scope > .text").text_content() == (
        "Sales & more\n\nSegment | 2022\n\n유럽 | 1 < 2\n\na&#x202e;b")
    passage.locator(".rest > summary").click()
    assert passage.locator(".rest .text").text_content() == html
