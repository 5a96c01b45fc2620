"""Targets of links stay in the HTML rendering; the plain text has the words alone."""
import pytest

from ragbed.documents import parse_document


@pytest.mark.parametrize(("page", "html", "plain"), [
    ('<p>See <a href="https://esk.example/a?b=1&c=2" onclick="x()">the <b>reef</b></a> now.</p>',
     '<p>See <a href="https://esk.example/a?b=1&amp;c=2">the <strong>reef</strong></a> now.</p>\n',
     "See the reef now.\n\n"),
    ('<p><a href="javascript:x()">no</a> <a href="data:text/html,x">no</a> <a href="/here">no</a></p>',
     "<p>no no no</p>\n", "no no no\n\n"),
    ('<p><a href="java\nscript:x()">no</a> <a href="https://a.b/&quot;onclick=x">no</a></p>', "<p>no no</p>\n",
     "no no\n\n"),
    ('<p><a href="mailto:ann@esk.example">Ann</a></p>', '<p><a href="mailto:ann@esk.example">Ann</a></p>\n',
     "Ann\n\n"),
    ('<a href="https://a.b/"><h2>Reefs</h2><p>They grow.</p></a>',
     '<h2><a href="https://a.b/">Reefs</a></h2>\n<p><a href="https://a.b/">They grow.</a></p>\n',
     "## Reefs\n\nThey grow.\n\n"),
    ('<p>a <b>b <a href="http://x.y">c</a> d</b></p>', '<p>a <strong>b <a href="http://x.y">c</a> d</strong></p>\n',
     "a b c d\n\n")])
def test_the_target_of_a_link_is_kept_if_it_leads_to_the_web(page, html, plain):
    read = parse_document(page.encode(), "page.html")
    assert (read.html, read.plain) == (html, plain)


def test_links_of_markdown_are_kept_too():
    read = parse_document(b"See [the reef](https://esk.example/) now.", "page.md")
    assert read.html == '<p>See <a href="https://esk.example/">the reef</a> now.</p>\n'
