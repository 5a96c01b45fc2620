"""The report in a real browser: it opens offline under its own policy, draws, filters, and stays inert.

Chromium is driven over its DevTools pipe. Nothing is downloaded; without a Chromium these tests are skipped.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from documents.types import digest
from experiments.metrics.aggregate import share_of
from experiments.question import Question
from experiments.record import Record, Result, StoredMessage, StoredPassage, StoredStep, Timing
from experiments.report import ReportInput, write_report
from strategies.types import Usage

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe")
ATTACK = "document.title='PWNED'"
HOSTILE = (f'</script><script>{ATTACK}</script><img src="http://127.0.0.1:9/x" onerror="{ATTACK}">'
           "<style>*{display:none}</style>")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed (Debian: apt-get install chromium)")


class Browser:
    """One Chromium with one page."""

    def __init__(self, profile: Path) -> None:
        from_us, self._out = os.pipe()
        self._in, to_us = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4; the shell moves ours there.
        shell = ["bash", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "bash"]
        self._process = subprocess.Popen(
            [*shell, str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "about:blank"], pass_fds=(from_us, to_us),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self._buffer, self._calls, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._calls += 1
        to = {"sessionId": self._session} if self._session else {}
        message = {"id": self._calls, "method": method, "params": params, **to}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._calls:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._in, 1 << 16)
            assert data, "Chromium ended"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(line)

    def js(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while not self.js(condition):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.03)

    def open(self, path: Path) -> None:
        self.call("Page.navigate", url=path.as_uri())
        self.wait("location.protocol === 'file:' && document.querySelector('#chart .main-svg') !== null")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)


def written(folder: Path) -> Path:
    """A report of two cells over two questions, every text of which attacks."""
    prompt = HOSTILE + "The documents. " * 40
    texts = {digest(text): text for text in (HOSTILE, prompt)}
    passage = StoredPassage(number=1, chunk="c", document="d", source=HOSTILE, format="plain", start=0, end=9,
                            pages=None, text=digest(HOSTILE))
    step = StoredStep(kind="generate", purpose=HOSTILE, text=HOSTILE, usage=Usage(9, 9, 0, 1),
                      messages=(StoredMessage(role="user", parts=(digest(prompt),)),))
    records = [Record(
        result=Result(cell=cell, question=question, answerable=question == "q1", outcome=outcome,
                      text=HOSTILE + " [1]", refused=False, refused_as_published=False, cited=(1,),
                      invalid_citations=(), tagged=True, notes=(HOSTILE,), evidence=(passage,), gold_total=0,
                      gold_in_view=None, verdict=None, scores={HOSTILE: 1.0}, usage=Usage(), trace=(step,)),
        timing=Timing(seconds=1, attempts=1, replayed=0, paid=None, finished=""))
        for question, outcome in (("q1", "answered"), ("q2", "malformed")) for cell in ("a", "b")]
    cells = [{"id": name, "reasoning": name + HOSTILE, "judge": "lexical", "n": 2,
              "rules": "grounded", "scoring": "corrected", "layout": HOSTILE,
              "outcomes": {"answered": 1, "malformed": 1},
              "metrics": {"unified": {"mean": 0.5, "low": 0.1, "high": 0.9, "n": 2}},
              "usage": {"prompt_tokens": 18, "completion_tokens": 18, "calls": 2, "price": None}} for name in "ab"]
    questions = {"q1": Question("q1", "needle " + HOSTILE, (HOSTILE,), answerable=True),
                 "q2": Question("q2", "hay", (), answerable=False)}
    heat = {"name": "depth", "title": HOSTILE, "header": [HOSTILE] * 14, "keys": 2, "main": 3, "shaded": True,
            "notes": [HOSTILE], "rows": [[HOSTILE, name, 9, *[share_of(at, 10) for at in range(11)]] for name in "ab"]}
    summary = {"run": HOSTILE, "columns": ["unified"], "cells": cells, "notes": [HOSTILE], "views": [heat],
               "published": ["mrceval_2"]}
    write_report(ReportInput(HOSTILE, summary, questions, records, texts.__getitem__), folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("profile"))
    try:
        started.open(written(tmp_path_factory.mktemp("report")))
        yield started
    finally:
        started.close()


def test_the_plot_is_drawn(browser: Browser) -> None:
    assert browser.js("document.querySelectorAll('#chart .scatterlayer .trace').length") == 2


def test_prompts_appear_when_their_details_open(browser: Browser) -> None:
    browser.js("for (const d of document.querySelectorAll('#q1, #q1-c1 .trace, #q1-c1 .part')) d.open = true")
    browser.wait("document.querySelector('#q1-c1 .part pre').textContent.endsWith('The documents. ')")
    assert browser.js("document.querySelector('#q1-c1 .part pre').textContent").startswith("</script><script>")


def test_a_citation_opens_the_passage_that_it_names(browser: Browser) -> None:
    browser.js("document.querySelector('#q2').open = false; document.querySelector('#q2-p1').open = false")
    browser.js("document.querySelector('#q2-c2 a.cite').click()")
    browser.wait("document.querySelector('#q2').open && document.querySelector('#q2-p1').open")
    assert browser.js("document.activeElement.parentElement.id") == "q2-p1"


@pytest.mark.parametrize(("field", "value", "left"), [
    ("text", "NEEDLE", ["q1"]), ("outcome", "malformed", ["q2"]), ("answerable", "no", ["q2"]), ("text", "absent", [])])
def test_the_filter_leaves_what_fits(browser: Browser, field: str, value: str, left: list[str]) -> None:
    typed = "document.querySelector('#filter').reset(); const f = document.querySelector('#filter').elements['{}'];" \
            "f.value = '{}'; f.dispatchEvent(new Event('input', {{bubbles: true}}));"
    browser.js("{" + typed.format(field, value) + "}")
    assert browser.js("[...document.querySelectorAll('details.question:not([hidden])')].map(q => q.id)") == left
    assert browser.js("document.querySelector('#count').textContent") == f"{len(left)} of 2 shown"


def test_a_phone_needs_no_sideways_scrolling(browser: Browser) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    browser.js("for (const paper of document.querySelectorAll('.paper, .more')) paper.open = true")
    browser.wait("document.documentElement.scrollWidth <= 390")
    browser.call("Emulation.clearDeviceMetricsOverride")


def test_a_heat_maps_shades_differ_and_its_words_stand_out(browser: Browser) -> None:
    for scheme in ("dark", "light"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        shades = browser.js(SHADES)
        assert len({shade for shade, _ in shades}) == 11
        assert min(contrast for _, contrast in shades) >= 4.5


# Each shade's colour and its contrast to the text on it (WCAG 2), as the browser paints them.
SHADES = """(() => {
  const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => {
    paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = rgb(colour).map((v) => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  return [...document.querySelector('.heat tbody tr').querySelectorAll('td[class]')].map((cell) => {
    const style = getComputedStyle(cell), [a, b] = [light(style.backgroundColor), light(style.color)];
    return [rgb(style.backgroundColor).join(), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)]; });
})()"""


def test_printing_opens_the_questions_and_closes_them_again(browser: Browser) -> None:
    browser.js("document.querySelector('#filter').reset(); document.querySelector('#q1').open = false; applyFilter()")
    browser.js("dispatchEvent(new Event('beforeprint'))")
    assert browser.js("document.querySelector('#q1').open") is True
    browser.js("dispatchEvent(new Event('afterprint'))")
    assert browser.js("document.querySelector('#q1').open") is False


def test_nothing_ran_nothing_was_fetched_and_the_policy_was_never_hit(browser: Browser) -> None:
    for scheme in ("dark", "light"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=200, y=200)
    assert "PWNED" not in browser.js("document.title").replace(HOSTILE, "")
    asked = {event["params"]["request"]["url"].split("#")[0] for event in browser.events
             if event["method"] == "Network.requestWillBeSent"}
    assert all(url.startswith("file://") and url.endswith("/report.html") for url in asked), asked
    said = [event for event in browser.events
            if event["method"] in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")]
    assert said == []
