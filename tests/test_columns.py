"""Tables in a terminal that is narrower than they are."""
import pytest

from experiments.terminal.columns import blocks, wrap

HEADER = ["reasoning", "condition", "n", "exact match", "f1", "outcomes", "tokens", "price"]
ROWS = [[way, "closed-book", "120", "0.42 [0.33, 0.51]", "-0.42 [-0.53, -0.31]", "114 answered\n1 error", "200796",
         "$0.0304"] for way in ("direct", "chain_of_thought")]


def lines(width, header=HEADER, rows=ROWS, keys=2):
    return [[line for line, _ in block.lines()] for block in blocks(header, rows, keys, width)]


def test_a_table_that_fits_stands_on_one_block_with_its_intervals_beside_the_means():
    (header, first, more, second, _), = lines(120)
    assert header.split() == ["reasoning", "condition", "n", "exact", "match", "f1", "outcomes", "tokens", "price"]
    assert first.startswith("direct            closed-book  120  0.42 [0.33, 0.51]  -0.42 [-0.53, -0.31]  114 answered")
    assert more.strip() == "1 error"
    assert second.startswith("chain_of_thought  closed-book")


@pytest.mark.parametrize("width", [60, 72, 80, 100])
def test_a_wider_table_becomes_blocks_in_which_no_number_or_word_is_cut(width):
    made = lines(width)
    assert max(len(line) for block in made for line in block) <= width
    words = "\n".join("\n".join(block) for block in made).split()
    for whole in ("200796", "$0.0304", "answered", "[0.33,", "0.51]", "[-0.53,", "-0.31]", "outcomes"):
        assert whole in words
    for block in made:
        assert any(line.startswith("direct") for line in block)
        assert any(line.startswith("chain_of_thought  closed-book" if width > 60 else "chain_of_") for line in block)


def test_intervals_stand_on_a_second_line_where_that_saves_room_for_another_column():
    (_, *rest), = lines(64, HEADER[:1] + HEADER[3:6], [[row[0], *row[3:6]] for row in ROWS], 1)
    assert rest[0].split("  ")[0] == "direct"
    assert rest[1].split() == ["[0.33,", "0.51]", "[-0.53,", "-0.31]", "1", "error"]


def test_blocks_are_about_equally_wide():
    header, row = ["cell", *"abcdefg"], ["x" * 10, *["y" * 10] * 7]
    assert [len(block.widths) for block in blocks(header, [row], 1, 70)] == [5, 4]


def test_names_that_are_alike_at_their_beginning_are_shown_to_their_end():
    names = [f"http://127.0.0.1:18431/v1#a · {way} · retrieved · dense · once" for way in ("direct", "plan_and_solve")]
    block, = blocks(["cell", "n", "em"], [[name, "120", "0.42 [0.33, 0.51]"] for name in names], 1, 60)
    shown = "".join(line[:block.widths[0]] for line, _ in block.lines()).replace(" ", "")
    assert all(name.replace(" ", "") in shown for name in names)


@pytest.mark.parametrize(("text", "width", "lines"), [
    ("chain_of_thought · given", 16, ["chain_of_thought", "· given"]),
    ("chain_of_thought", 9, ["chain_of_", "thought"]),
    ("0.42 [0.33, 0.51]", 14, ["0.42", "[0.33, 0.51]"]),
    ("a  b", 10, ["a  b"]), ("", 5, [""]), ("a\n\nb", 5, ["a", "", "b"]),
    ("abcdefgh", 3, ["abc", "def", "gh"]), ("한국어 질문", 6, ["한국어", "질문"]), ("한국어", 4, ["한국", "어"])])
def test_texts_break_at_blanks_then_after_marks_then_anywhere(text, width, lines):
    assert wrap(text, width) == lines


def test_a_table_without_rows_has_its_header():
    assert lines(40, ["question", "score"], [], 1) == [["question  score"]]
