"""What the chat page shows when the rule takes documents away from a key."""
import pytest
from chromium import SETTLED
from groups import ANN, LINES, build, guarded

from ragbed.experiments.guests.serving.api_keys import Keys

pytestmark = pytest.mark.slow


def test_a_withheld_answer_says_why_and_offers_nothing_that_fails_again(browser, serve, tmp_path):
    keys = Keys(LINES)
    model = serve(lambda body: "The code is 4711 [1].")
    with guarded(build(tmp_path), model, tmp_path / "t", keys=keys) as client, browser.new_context() as context:
        page = context.new_page()
        page.goto(str(client.base_url))
        page.locator("#key-field").fill(ANN)
        page.keyboard.press("Enter")
        page.wait_for_selector(SETTLED, state="attached")
        page.locator("#question").fill("Which code does the falcon project have?")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Ask again").wait_for()
        assert "4711" in page.locator(".answer").inner_text()
        keys.replace(Keys([f"ann {ANN} groups=staff", *LINES[1:]]))
        page.reload()
        page.get_by_text("Answer withheld", exact=True).wait_for()
        assert page.locator(".answer").inner_text().split("\n\n") == [
            "Answer withheld", "This answer is based on documents that your key may no longer read."]
        assert page.locator("#said").text_content() == (
            "Answer withheld. This answer is based on documents that your key may no longer read.")
        assert page.locator(".answer button").count() == 0
        page.locator("#question").fill("And now?")
        page.keyboard.press("Enter")
        page.locator(".answer", has_text="your key may no longer read; start a new one").wait_for()
