"""The numbers that Word shows before headings and list items, and what else of a Word file a reader sees."""
import functools
import io

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from each_case import each

from ragbed.documents import parse_document
from tests.test_office import MATH, saved, with_part

NAMES = (f'{nsdecls("w", "a", "wp")} xmlns:m="{MATH}" xmlns:v="urn:schemas-microsoft-com:vml" '
         'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
         'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"')


@functools.cache
def template() -> bytes:
    """python-docx's own without its styles of tables, with which reading takes six times as long."""
    word = docx.Document()
    for style in word.styles.element.xpath("w:style[@w:type='table']"):
        style.getparent().remove(style)
    return saved(word)


def new_word():
    return docx.Document(io.BytesIO(template()))


def level(number, format, text, more="", start=1):
    return (f'<w:lvl w:ilvl="{number}"><w:start w:val="{start}"/><w:numFmt w:val="{format}"/>{more}'
            f'<w:lvlText w:val="{text}"/></w:lvl>')


def numbered(levels, *paragraphs, lists='<w:num w:numId="7"><w:abstractNumId w:val="7"/></w:num>', styles=()):
    """Parse a document whose paragraphs are (text, list, level, style); a list of None leaves it to the style."""
    word = new_word()
    for style in styles:
        word.styles[style].element.get_or_add_pPr().append(parse_xml(
            f'<w:numPr {nsdecls("w")}><w:numId w:val="7"/></w:numPr>'))
    for text, number, depth, style in paragraphs:
        paragraph = word.add_paragraph(text, style=style)
        if number is not None:
            paragraph._p.get_or_add_pPr().append(parse_xml(
                f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>'))
    numbering = (f'<w:numbering {nsdecls("w")}><w:abstractNum w:abstractNumId="7">{levels}</w:abstractNum>{lists}'
                 '</w:numbering>')
    return parse_document(with_part(saved(word), "word/numbering.xml", numbering.encode()), "a.docx").plain


CONTRACT = (level(0, "decimal", "%1.") + level(1, "lowerLetter", "(%2)") + level(2, "upperRoman", "%3)")
            + level(3, "decimal", "%1.%2.%4", "<w:isLgl/>"))


def test_headings_and_clauses_have_their_numbers():
    assert numbered(CONTRACT, ("Scope", 7, 0, "Heading 1"), ("first", 7, 1, None), ("second", 7, 1, None),
                    ("deep", 7, 2, None), ("deeper", 7, 2, None), ("legal", 7, 3, None), ("A remark.", None, 0, None),
                    ("third", 7, 1, None), ("Fees", 7, 0, "Heading 1"), ("anew", 7, 1, None)) == (
        "# 1. Scope\n\n(a) first\n\n(b) second\n\nI) deep\n\nII) deeper\n\n1.2.1 legal\n\nA remark.\n\n(c) third\n\n"
        "# 2. Fees\n\n(a) anew\n\n")


def test_a_list_goes_on_after_a_remark_and_nests():
    assert numbered(CONTRACT.replace("(%2)", "%2.").replace("lowerLetter", "decimal"), ("one", 7, 0, None),
                    ("two", 7, 0, None), ("A remark.", None, 0, None), ("three", 7, 0, None), ("inner", 7, 1, None),
                    ("four", 7, 0, None)) == "1. one\n2. two\n\nA remark.\n\n3. three\n   1. inner\n4. four\n\n"


def test_a_heading_takes_its_number_from_its_style():
    levels = (level(0, "upperRoman", "%1.", '<w:pStyle w:val="Heading1"/>')
              + level(1, "decimal", "%1.%2", '<w:pStyle w:val="Heading2"/>'))
    assert numbered(levels, ("One", None, 0, "Heading 1"), ("Inner", None, 0, "Heading 2"), ("Off", 0, 0, "Heading 1"),
                    ("Two", None, 0, "Heading 1"), styles=("Heading 1", "Heading 2")) == (
        "# I. One\n\n## I.1 Inner\n\n# Off\n\n# II. Two\n\n")


def test_lists_of_one_definition_count_on_unless_one_starts_anew():
    lists = "".join(f'<w:num w:numId="{number}"><w:abstractNumId w:val="7"/>{more}</w:num>' for number, more in (
        (7, ""), (8, ""), (9, '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>')))
    assert numbered(level(0, "decimal", "§ %1"), *((each, int(each), 0, None) for each in "789987"), lists=lists) == (
        "§ 1 7\n\n§ 2 8\n\n§ 5 9\n\n§ 6 9\n\n§ 7 8\n\n§ 8 7\n\n")


@pytest.mark.parametrize(("restart", "last"), [("", "1.1 c"), ('<w:lvlRestart w:val="0"/>', "1.2 c")])
def test_a_level_restarts_below_a_higher_one_unless_it_says_no(restart, last):
    levels = level(0, "decimal", "%1.", start=0) + level(1, "decimal", "%1.%2", restart)
    found = numbered(levels, ("A", 7, 0, "Heading 1"), ("b", 7, 1, None), ("B", 7, 0, "Heading 1"), ("c", 7, 1, None))
    assert found == (
        f"# 0. A\n\n0.1 b\n\n# 1. B\n\n{last}\n\n")


@each(("format", "shown"), [
    ("decimalZero", "01"), ("lowerRoman", "i"), ("upperLetter", "A"), ("ordinal", "1st"), ("ganada", "가"),
    ("decimalEnclosedCircle", "①"), ("japaneseCounting", "一"), ("none", ""), ("bullet", "-")])
def test_formats_of_numbers(format, shown):
    assert numbered(level(0, format, "%1"), ("x", 7, 0, None)) == f"{shown} x".strip() + "\n\n"


def body(*paragraphs):
    word = new_word()
    for paragraph in reversed(paragraphs):
        word.element.body.insert(0, parse_xml(f"<w:p {NAMES}>{paragraph}</w:p>"))
    return parse_document(saved(word), "a.docx").plain


def run(text):
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


BOX = "<w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent>"
DRAWN = ("<w:drawing><wp:inline><a:graphic><a:graphicData><wps:wsp><wps:txbx>" + BOX
         + "</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing>")


@each(("content", "plain"), [
    (f'<w:fldSimple w:instr="REF x">{run("a field")}</w:fldSimple>', "a field"),
    (f'<w:dir w:val="rtl">{run("right")}</w:dir><w:bdo w:val="ltr">{run(" left")}</w:bdo>', "right left"),
    (f'<w:smartTag>{run("tag")}</w:smartTag><w:customXml w:element="x">{run(" xml")}</w:customXml>', "tag xml"),
    (f"<w:sdt><w:sdtContent>{run('control')}</w:sdtContent></w:sdt>", "control"),
    (f'<w:ins w:id="1">{run("new")}</w:ins><w:del w:id="2"><w:r><w:delText>old</w:delText></w:r></w:del>', "new"),
    (f'<w:r><mc:AlternateContent><mc:Choice Requires="wps">{DRAWN}</mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>'
     f'{BOX}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>', "In a box"),
    (f"<w:r>{DRAWN}</w:r>", "In a box"),
    ('<w:r><w:pict><v:shape><v:textpath string="Word Art"/></v:shape></w:pict></w:r>', "Word Art"),
    ('<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="No"/>'
     '<w:listEntry w:val="Yes"/></w:ddList></w:ffData></w:fldChar></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>',
     "Yes"),
    ('<w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b</w:t><w:tab/><w:t>c</w:t><w:br/><w:t>d</w:t><w:cr/><w:t>e</w:t>'
     '<w:sym w:font="Arial" w:char="2264"/></w:r>', "a\u2011b c\nd\ne≤")])
def test_text_in_every_wrapper_is_read_once(content, plain):
    assert body(content) == f"{plain}\n\n"


def part(name, **parts):
    return f"<m:{name}>" + "".join(
        f"<m:{key}>{value if value.startswith('<') else symbol(value)}</m:{key}>" for key, value in parts.items()
    ) + f"</m:{name}>"


def symbol(text):
    return f"<m:r><m:t>{text}</m:t></m:r>"


HALF = part("f", num="1", den="2")


@each(("formula", "plain"), [
    (part("sSup", e="10", sup="3"), "10^3"), (HALF, "1/2"), (symbol("3") + HALF, "3 1/2"),
    (HALF + symbol("x"), "1/2 x"),
    (part("f", num="a+b", den="c"), "(a+b)/c"), (part("sSub", e="x", sub="1"), "x_1"),
    (part("bar", e="y") + part("sPre", sub="2", sup="4", e="He"), "y _2^4He"),
    (part("sSubSup", e="x", sub="1", sup="2"), "x_1^2"), (part("rad", deg="3", e="x"), "∛x"),
    ('<m:rad><m:radPr><m:degHide m:val="1"/></m:radPr><m:deg/><m:e>' + symbol("x+1") + "</m:e></m:rad>", "√(x+1)"),
    ('<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>' + part("sub", x="i=1").replace("m:x>", "m:box>")
     + part("sup", x="n").replace("m:x>", "m:box>") + "<m:e>" + symbol("i") + "</m:e></m:nary>", "∑_(i=1)^n i"),
    ('<m:d><m:dPr><m:begChr m:val="|"/><m:endChr m:val="|"/></m:dPr><m:e>' + symbol("x") + "</m:e></m:d>", "|x|"),
    ("<m:d><m:e><m:m>" + "".join(f"<m:mr><m:e>{symbol(a)}</m:e><m:e>{symbol(b)}</m:e></m:mr>" for a, b in ("12", "34"))
     + "</m:m></m:e></m:d>", "(1, 2; 3, 4)"),
    (part("func", fName="sin", e="x"), "sin x"), (symbol("1") + symbol("0"), "10")])
def test_formulas_of_word_are_on_one_line(formula, plain):
    assert body(f"{run('Is ')}<m:oMath>{formula}</m:oMath>{run('.')}") == f"Is {plain}.\n\n"


def test_headers_and_footers_come_once_at_the_end():
    word = new_word()
    word.add_paragraph("Text.")
    word.add_section()
    for section in word.sections:
        section.header.is_linked_to_previous = section.footer.is_linked_to_previous = False
        section.header.paragraphs[0].text, section.footer.paragraphs[0].text = "Contract 17", "Draft"
    plain = parse_document(saved(word), "a.docx").plain
    assert (plain[:7], sorted(plain.split())) == ("Text.\n\n", ["17", "Contract", "Draft", "Text."])
