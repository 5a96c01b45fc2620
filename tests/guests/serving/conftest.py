"""Fixtures for tests of the server: one serves the index `capitals`, the other opens the chat page."""
import contextlib

import pytest
from chromium import SETTLED
from serving import answering as answering_from
from serving import served

from ragbed.experiments.guests.serving.app import create_app
from ragbed.experiments.guests.serving.state import PageSettings


@pytest.fixture
def answering(serve, capitals, tmp_path):
    """Serves that index; see `serving.answering`."""
    with answering_from(serve, capitals, tmp_path) as start:
        yield start


@pytest.fixture
def page_of(browser, serve, tmp_path):
    """Serves over a scripted model, and opens the page; nothing may be complained of, nor any other host asked."""
    said, asked, contexts = [], [], []
    with contextlib.ExitStack() as stack:
        def start(script, described, make=create_app, explore=0.0, page=None, **options):
            url = stack.enter_context(served(described(serve(script).url), tmp_path / "traffic", make, explore=explore,
                                             page=page or PageSettings()))
            return opened(url, **options)

        def opened(url, path="/", settled=SETTLED, **options):
            contexts.append(browser.new_context(**options))
            page = contexts[-1].new_page()
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: asked.append((request.url, url)))
            page.goto(f"{url}{path}")
            page.wait_for_selector(settled, state="attached")
            page.server, page.said = url, said
            return page

        start.opened = opened
        yield start
        titles = [page.title() for context in contexts for page in context.pages]
        for context in contexts:
            context.close()
    assert said == []
    assert all(url.startswith((own, "data:,")) for url, own in asked)
    assert not any(title.startswith("PWNED") for title in titles)
