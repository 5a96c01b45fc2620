"""Plain text and Markdown files."""
from ragbed.documents import parse_document


def test_text_is_kept_as_it_is_with_its_line_ends_normalised() -> None:
    document = parse_document(b"One\r\ntwo\r\n\r\n\r\nThree & <four>\r", "a.txt")
    assert document.plain == "One\ntwo\n\n\nThree & <four>\n"
    assert document.html == "<p>One\ntwo</p>\n<p>Three &amp; &lt;four&gt;</p>\n"
    assert document.title == "a.txt"


def test_aligned_text_stays_aligned() -> None:
    document = parse_document(b"Name     Age\nAnn       41\n\nProse here.", "a.txt")
    assert document.html == "<pre>Name     Age\nAnn       41</pre>\n<p>Prose here.</p>\n"


def test_markdown_takes_the_path_of_html() -> None:
    data = (b"---\ntitle: meta\n---\n# Head *it*\n\n| a | b |\n|---|---|\n| 1 | `2` |\n\n1. x\n2. y\n\n"
            b"<script>bad()</script>")
    document = parse_document(data, "notes.md")
    assert document.title == "Head it"
    assert document.plain == "# Head it\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n1. x\n2. y\n\n"
    assert "bad" not in document.html


def test_markdown_nested_too_deep_for_its_parser_loses_nothing() -> None:
    document = parse_document(b">" * 5_000 + b" deep\n\n" + b"- " * 3_000 + b"end", "deep.md")
    assert "deep" in document.plain
    assert "end" in document.plain
