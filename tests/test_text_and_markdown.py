"""Plain text and Markdown files."""
from each_case import each

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
    assert document.title == "meta"
    assert document.plain == "title: meta\n\n# Head it\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n1. x\n2. y\n\n"
    assert "bad" not in document.html


def test_markdown_nested_too_deep_for_its_parser_loses_nothing() -> None:
    document = parse_document(b">" * 5_000 + b" deep\n\n" + b"- " * 3_000 + b"end", "deep.md")
    assert "deep" in document.plain
    assert "end" in document.plain


@each(("data", "title", "plain", "fields"), [
    ("---\n\nThe fee is 500.\n\n---\n\nSecond.", "a.md", "* * *\n\nThe fee is 500.\n\n* * *\n\nSecond.\n\n", {}),
    ("---\nPlain words.\n---\nText.", "Plain words.", "* * *\n\n## Plain words.\n\nText.\n\n", {}),
    ("---\nNot: [valid\n---\nText.", "Not: [valid", "* * *\n\n## Not: [valid\n\nText.\n\n", {}),
    ("---\ntitle: Never closed\n\nText.", "a.md", "* * *\n\ntitle: Never closed\n\nText.\n\n", {}),
    ("---\n---\nText.", "a.md", "Text.\n\n", {}),
    ("\ufeff---\r\ntitle: Fees\r\nyear: 2024\r\n---\r\nText.\r\n", "Fees", "title: Fees\nyear: 2024\n\nText.\n\n",
     {"year": 2024}),
    ("---\ntitle: Only\nnote: a fee\n---\n", "Only", "title: Only\nnote: a fee\n\n", {"note": "a fee"}),
    ("---\ndate: 2024-05-01\nzip: 02494\ntags: [mill, river]\nauthor:\n  name: Ann\ndraft: no\nfinal: true\n...\nText.",
     "a.md",
     "date: 2024-05-01\nzip: 02494\ntags: [mill, river]\nauthor:\nname: Ann\ndraft: no\nfinal: true\n\nText.\n\n",
     {"date": "2024-05-01", "zip": "02494", "tags": "mill, river", "author.name": "Ann", "draft": "no", "final": True}),
    ("+++\ntitle = 'Fees'\ndate = 2024-05-01\nyear = 2024\n+++\nText.", "Fees",
     "title = 'Fees'\ndate = 2024-05-01\nyear = 2024\n\nText.\n\n", {"date": "2024-05-01", "year": 2024}),
    ("+++\nno toml\n+++\nText.", "a.md", "+++ no toml +++ Text.\n\n", {})])
def test_front_matter_gives_title_and_fields_and_what_is_none_is_text(data, title, plain, fields) -> None:
    document = parse_document(data.encode(), "a.md")
    assert (document.title, document.plain, document.fields) == (title, plain, fields)


def test_front_matter_that_means_harm_is_bounded() -> None:
    bomb = "a0: &a0 {k: v}\n" + "".join(f"a{n + 1}: &a{n + 1} {{{', '.join(f'k{k}: *a{n}' for k in range(9))}}}\n"
                                        for n in range(20))
    assert len(parse_document(f"---\n{bomb}---\nText.".encode(), "a.md").fields) <= 100
    assert "Text." in parse_document(b"---\na: " + b"[" * 2_000 + b"\n---\n\nText.", "a.md").plain
    assert parse_document(b"---\na: !!python/object/apply:os.system [ls]\n---\nText.", "a.md").fields == {"a": "ls"}


def test_fields_of_front_matter_are_filtered_on_and_its_words_are_found(tmp_path, ragbed) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: Fees\nyear: 2024\nregion: Arlen\n---\nThe fee is 500.")
    (tmp_path / "b.md").write_text("---\nyear: 2021\n---\nThe fee is 400.")
    ragbed.json("index", tmp_path / "a.md", tmp_path / "b.md", "--out", tmp_path / "idx", "--embedder", "none")

    def search(words, *where):
        found = ragbed.json("search", words, "--index", tmp_path / "idx", "--retriever", "bm25", *where)
        return sorted({hit["document"] for hit in found["hits"]})

    assert search("fee") == ["a.md", "b.md"]
    assert search("Arlen") == ["a.md"]
    assert search("fee", "--where", "year < 2022") == ["b.md"]
    assert search("fee", "--where", "title = fees and year >= 2022") == ["a.md"]


def test_cells_beyond_a_tables_header_and_pipes_in_code_are_kept() -> None:
    plain = parse_document(b"| a | b |\n|---|---|\n| 1 | 2 | 3 | four |\n| `x|y` | z |\n| p \\| q | r |\n\n"
                           b"> | c | d |\n> |---|---|\n> | 5 | 6 | seven |\n", "a.md").plain
    assert plain == ("| a | b |  |  |\n| --- | --- | --- | --- |\n| 1 | 2 | 3 | four |\n| x\\|y | z |  |  |\n"
                     "| p \\| q | r |  |  |\n\n> | c | d |  |\n> | --- | --- | --- |\n> | 5 | 6 | seven |\n\n")


def test_a_footnote_of_one_word_is_kept() -> None:
    assert parse_document(b"May I?[^1]\n\n[^1]: Yes\n", "a.md").plain == "May I?[^1]\n\n[^1]: Yes\n\n"
