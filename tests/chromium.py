"""A Chromium for the tests of the report: what opens a page, and what watches that it stays by itself."""
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SETTLED = "html[data-settled]"


@contextmanager
def launched():
    """A browser; nothing is downloaded for it."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.skip("no chromium is installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def is_report(url, page):
    return url.startswith("file://") and url.endswith("/report.html")


def visiting(browser, may_ask=is_report, may_say="\0"):
    """Yields what opens an address; at the end nothing else may have been complained of, and nothing else asked for: of
    an address and that of its page `may_ask` tells. A report asks for nothing but itself."""
    contexts, said, asked = [], [], []

    def visit(url, settled=True, **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append((request.url.partition("#")[0], url)))
        page.goto(url)
        if settled and options.get("java_script_enabled", True):
            page.wait_for_selector(SETTLED, state="attached")
        return page

    yield visit
    titles = [page.title() for context in contexts for page in context.pages]
    for context in contexts:
        context.close()
    assert [line for line in said if may_say not in line] == []
    assert all(may_ask(*one) for one in asked)
    assert may_ask is not is_report or len(asked) == len(contexts)
    assert not any(title.startswith("PWNED") for title in titles)


def settle(page, change):
    """Makes a change and waits until the list shows what fits."""
    turn = page.locator("html").get_attribute("data-settled")
    change()
    page.wait_for_selector(f'{SETTLED}:not([data-settled="{turn}"])', state="attached")


def shown(page):
    """The numbers of the questions in the list."""
    return [int(number) for number in page.locator("#list .question > summary .head .number").all_text_contents()]


def opened(page, number):
    """Opens the question of that number; its row."""
    row = page.locator(f'.question[data-question="{number - 1}"]')
    if not row.evaluate("row => row.open"):
        row.locator(":scope > summary").click()
    row.locator(".cards").wait_for()
    return row


# The contrast of each element's text to what is behind it (WCAG 2), as the browser paints them.
CONTRASTS = """(elements) => {
  const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (...colours) => {
    for (const colour of colours) { paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1); }
    return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (colours) => {
    const [r, g, b] = rgb(...colours).map((v) => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const painted = (element) => getComputedStyle(element).backgroundColor;
  const behind = (element) => element ? [...behind(element.parentElement), painted(element)] : [];
  return elements.map((element) => {
    const back = behind(element), [a, b] = [light(back), light([...back, getComputedStyle(element).color])];
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); });
}"""
