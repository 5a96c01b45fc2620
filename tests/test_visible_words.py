"""Each visible word of a file of any format is in the plain text, or its page is named as skipped.

The visible words of each file begin with `see`, and those that no reader sees begin with `zx`.
"""
import io
import re
import zipfile
from itertools import count

import docx
import pymupdf
from docx.oxml import parse_xml
from each_case import each
from openpyxl import Workbook
from openpyxl.comments import Comment
from pptx import Presentation
from pptx.util import Inches

from ragbed.documents import parse_document
from tests.test_office import saved
from tests.test_word_numbers import BOX, DRAWN, NAMES, run


def numbered_words(template: str) -> str:
    """Replace each `#` by a word that no other place has."""
    numbers = count(1)
    return re.sub("#", lambda found: f"see{next(numbers)}w", template)


PAGE = """<title>#</title><h1># <em>#</em></h1><p>#<br># <a href=x>#</a> <code>#</code> <q>#</q> <mark>#</mark>
<ins>#</ins> <input value="#"> <select><option>zx<option selected>#</select>
<table><caption>#</caption><tr><th>#<th colspan=2>#<tr><td rowspan=2>#<td>#<td>#<table><tr><td>#</table></table>
<ul><li>#<ol><li>#</ol></ul><dl><dt>#<dd>#</dl><pre>#</pre><blockquote>#</blockquote>
<figure><img src=x alt="#"><figcaption>#</figcaption></figure><svg><text>#</text><defs><text>zx</text></defs></svg>
<math><mfrac><mi>#</mi><mi>#</mi></mfrac></math><ruby>#<rt>#</rt></ruby><address>#</address><button>#</button>
<label>#</label><dialog>zx</dialog><dialog open>#</dialog><textarea>#</textarea>
<details><summary>#</summary>#</details><nav>#</nav><aside>#</aside><footer>#</footer><main>#</main>
<unknown>#</unknown><noscript>#</noscript><fieldset><legend>#</legend></fieldset>
<template>zx</template><script>zx</script><style>zx</style><p hidden>zx</p><p style="display:none">zx</p><!-- zx -->"""
MARKDOWN = """---
title: #
tags: [#, #]
author: {name: #}
---
# #

Text # *#* **#** ~~#~~ `#` [#](x) ![#](y) <b>#</b> &amp;#

| # | # |
|---|---|
| # | `#|#` | # |
| # \\| # |

1. #
   - #

> #

    #

```
#
```

#[^1]

[^1]: #

<details><summary>#</summary>#</details>

<!-- zx -->
"""


def word_file() -> bytes:
    word = docx.Document()
    word.add_heading("#", 1)
    word.add_paragraph("#", style="List Number")
    table = word.add_table(2, 2)
    for cell in (*table.columns[0].cells, *table.columns[1].cells):
        cell.text = "#"
    wrapped = (f'<w:fldSimple w:instr="REF x">{run("#")}</w:fldSimple> <w:dir w:val="rtl">{run(" #")}</w:dir>'
               f'<w:bdo w:val="rtl">{run(" #")}</w:bdo><w:ins w:id="1">{run(" #")}</w:ins>'
               f"<w:sdt><w:sdtContent>{run(' #')}</w:sdtContent></w:sdt><w:smartTag>{run(' #')}</w:smartTag>"
               f"<w:hyperlink>{run(' #')}</w:hyperlink><m:oMath><m:r><m:t>#</m:t></m:r></m:oMath>"
               f"<w:r>{DRAWN}</w:r><w:r><w:pict><v:shape><v:textbox>{BOX}</v:textbox></v:shape></w:pict></w:r>"
               '<w:del w:id="2"><w:r><w:delText>zx</w:delText></w:r></w:del>'
               "<w:r><w:rPr><w:vanish/></w:rPr><w:t>zx</w:t></w:r>").replace("In a box", "#")
    word.element.body.insert(0, parse_xml(f"<w:p {NAMES}>{wrapped}</w:p>"))
    word.sections[0].header.paragraphs[0].text = word.sections[0].footer.paragraphs[0].text = "#"
    for element in (word.element, word.sections[0].header._element, word.sections[0].footer._element):
        for place, text in enumerate(element.xpath(".//w:t | .//m:t")):
            text.text = (text.text or "").replace("#", f"see{len(element)}x{place}w")
    return saved(word)


def slides_file() -> bytes:
    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "see1w", "see2w\nsee3w\vsee4w"
    slide.notes_slide.notes_text_frame.text = "see5w"
    inner = slide.shapes.add_group_shape().shapes.add_group_shape().shapes
    inner.add_textbox(0, 0, 9, 9).text_frame.text = "see6w"
    slide.shapes.add_table(1, 2, 0, 0, Inches(4), Inches(1)).table.cell(0, 1).text = "see7w"
    slide.shapes.add_shape(1, 0, 0, 9, 9).text_frame.text = "see8w"
    slide.shapes.add_connector(1, 0, 0, 9, 9)
    formula = parse_xml(
        f'<mc:AlternateContent {NAMES}><mc:Choice xmlns:a14="x" Requires="a14"><a14:m><m:oMath><m:r><m:t>see9w</m:t>'
        "</m:r></m:oMath></a14:m></mc:Choice><mc:Fallback><a:r><a:t>zx</a:t></a:r></mc:Fallback></mc:AlternateContent>")
    slide.shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]._p.append(formula)
    hidden = show.slides.add_slide(show.slide_layouts[5])
    hidden.shapes.title.text = "zx"
    hidden.element.set("show", "0")
    return saved(show)


def workbook_file() -> bytes:
    book = Workbook()
    sheet = book.active
    sheet.title = "see1w"
    sheet["A1"], sheet["B1"], sheet["ZZ9000"], sheet["A3"], sheet["A4"] = "see2w", "see3w", "see4w", "see5w", "see6w"
    sheet["A1"].comment = Comment("zx", "zx")
    sheet.merge_cells("A3:C3")
    sheet["A5"], sheet["A5"].number_format = 7, '0 "see7w"'
    sheet.column_dimensions["F"].hidden = True
    sheet["F1"] = "zx"
    book.create_sheet("zx").sheet_state = "hidden"
    return saved(book)


def pdf_file() -> bytes:
    file = pymupdf.open()
    page = file.new_page()
    for line in range(1, 6):
        page.insert_text((72, 72 + 20 * line), f"see{line}w")
    return file.tobytes()


CORPUS = {
    ".html": numbered_words(PAGE).encode(), ".md": numbered_words(MARKDOWN).encode(),
    ".txt": numbered_words("# #\n\n  #\t#\n\n\n#").encode(), ".csv": numbered_words("#,#\n\n#,#,#\n#\n,,#").encode(),
    ".docx": word_file, ".pptx": slides_file, ".xlsx": workbook_file, ".pdf": pdf_file}


def words_of(data: bytes) -> set[str]:
    """Return the words of a file that begin with `see`, from all parts of a ZIP archive."""
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            data = b" ".join(map(archive.read, archive.namelist()))
    return set(re.findall(r"see\w+?w\b", data.decode("utf-8", "replace")))


@each("suffix", sorted(CORPUS))
def test_each_visible_word_is_in_the_plain_text(suffix):
    made = CORPUS[suffix]
    data = made() if callable(made) else made
    words = {f"see{line}w" for line in range(1, 6)} if suffix == ".pdf" else words_of(data)
    document = parse_document(data, f"a{suffix}")
    shown = f"{document.title} {document.plain}"
    assert len(words) > 4
    assert sorted(word for word in words if word not in shown) == []
    assert "zx" not in shown
