"""Where sentences end: `|` marks each end in the texts below."""
from itertools import pairwise

from each_case import each
from growth import grows_linearly

from ragbed.documents.chunkers import Sections
from ragbed.documents.sentences import sentence_ends
from ragbed.documents.types import Document
from ragbed.experiments.guests.answer_support.statements import split_statements


def sentences(text):
    ends = pairwise([0, *sentence_ends(text), len(text)])
    return [piece for start, end in ends if (piece := text[start:end].strip())]


@each("marked", [
    "It opened on Nov. 5 in Paris.| See Art. 7, No. 5 and Fig. 3.| It costs approx. 40 euros.| Pay now.",
    "Tools, e.g. Inspect or promptfoo, help.| Smith vs. Jones was decided.| Smith et al. (2020) say so.",
    "J. R. R. Tolkien wrote it.| He (b. 1892) lived in St. Louis.", "Dr. Smith and Mrs. Jones met.| The Ph.D. left.",
    "Pi is 3.14.| Version 2.0 is at example.com.| They have vitamin C.| The U.S. Senate voted.",
    "It has 5 ft. 3 in. of it.",
    "He works at Apple Inc. in Cupertino.| At 5 p.m. Monday it ended.",
    "Wait... what?| Yahoo! is old.| \"Why?\" he asked.",
    "It was built in 1900 [1].| It fell in 1950.[2]| It was rebuilt.¹| He said \"Go.\"| Then he left.",
    "1. First item is here.| It is long.|\n2. Second item.",
    "Siehe § 3 Abs. 2 des Gesetzes.| Obst, z. B. Äpfel, u. a. Waren.| Am 5. Mai kam er.| Im 19. Jahrhundert nicht.",
    "M. Dupont est venu.| Voir l'art. 12, p. 5.| C'est tout.",
    "El Sr. Pérez vive en la Av. 5.| ¿Dónde está?| No lo sé.",
    "Il dott. Rossi è qui.| È tardi.", "Это на ул. Ленина.| В 1990 г. он уехал.| Он вернулся.",
    "यह एक वाक्य है।| यह दूसरा है।", "ما اسمك؟| اسمي أحمد.", "یہ ہے۔| وہ ہے۔", "Սա նախադասություն է։| Սա մյուսն է։",
    "서울은 수도입니다.| 인구는 많습니다.",
    "これは文です。|これも文です！|「はい。」と言った。",
    "这是一句话。|这是另一句？|好的！",
    "ይህ ነው።| ያ ነው።", "กรุงเทพฯ เป็นเมืองหลวง", "", "..."])
def test_a_sentence_ends_at_its_mark_and_not_at_an_abbreviation(marked):
    assert sentences(marked.replace("|", "")) == [piece.strip() for piece in marked.split("|") if piece.strip()]


def test_statements_and_chunks_keep_abbreviations_whole():
    text = "The hall opened on Nov. 5 in Paris. It was paid for by M. Dupont, see Art. 7 of the deed."
    first, second = "The hall opened on Nov. 5 in Paris.", "It was paid for by M. Dupont, see Art. 7 of the deed."
    assert split_statements(text) == [first, second]
    chunks = Sections(target=60, largest=70).chunk(Document("d", "d.html", "d", f"<p>{text}</p>", text, ()), "plain")
    assert [chunk.content.strip() for chunk in chunks] == [first, second]


def test_splitting_takes_linear_time():
    for piece in (". ", "a.", "[1]", "Nov. ", "。", '."', "1. "):
        grows_linearly(lambda n, piece=piece: [*sentence_ends(piece * n)], 20_000)
