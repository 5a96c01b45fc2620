"""Normalising, comparing and reading values in answer texts."""
from decimal import Decimal
from itertools import pairwise

import pytest
from each_case import each
from hypothesis import given
from hypothesis import strategies as st

from ragbed.documents.numbers import find_values
from ragbed.experiments.metrics import Scored, best_overlap, contains_answer, exact_match, score
from ragbed.strategies.normalizing import normalize_answer, normalize_values


@each(("text", "normal"), [
    ("The  Quick, brown Fox!", "quick brown fox"),
    ("An apple a day", "apple day"),
    ("(A)", "a"), ("The.", "the"),
    ("Papa Gino's", "papa ginos"),
    ("Papa Gino’s", "papa ginos"),
    ("Ｔｏｋｙｏ　１２", "tokyo 12"),
    ("서울\u1112\u1161\u11ab 강", "서울한 강"),
    ("", ""),
])
def test_normalisation_folds_case_width_punctuation_articles_and_spaces(text, normal):
    assert normalize_answer(text) == normal


@given(st.text(max_size=60))
def test_normalising_twice_changes_nothing_but_articles_that_punctuation_hid(text):
    once = normalize_answer(text)
    assert once == " ".join(once.split())
    assert not set(once) & set("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~")


@each(("text", "expected"), [
    ("1,577.00", ["1577"]), ("$1577", ["1577"]), ("1.577 thousand", ["1577"]), ("3.2 billion USD", ["3200000000"]),
    ("15%", ["15"]), ("15 per cent", ["15"]), ("-28 °C", ["-28"]), ("pages 10-28", ["10", "28"]),
    ("3억 5천만 원", ["350000000"]), ("1조 2,000억", ["1200000000000"]), ("the 3rd", ["3"]), ("B2B", []),
    ("1990s", ["1990"]), ("0.1314", ["0.1314"]), ("no figure", []),
])
def test_numbers_are_read_as_values(text, expected):
    assert [value.number for value in find_values(text)] == [Decimal(number) for number in expected]


@each("text", [
    "May 3, 2023", "3 May 2023", "3rd of May 2023", "may 3 2023", "2023-05-03", "2023. 5. 3.", "2023/5/3",
    "2023년 5월 3일", "2023년5월3일", "5/3/2023",
])
def test_one_date_in_many_forms_is_one_value(text):
    assert [value.date for value in find_values(text)] == [(2023, 5, 3)]


@pytest.mark.parametrize(("text", "date"), [
    ("May 2023", (2023, 5, None)), ("3 May", (None, 5, 3)), ("5월 3일", (None, 5, 3)), ("25/3/2023", (2023, 3, 25)),
    ("2023년 5월", (2023, 5, None)),
])
def test_partial_dates_keep_what_they_say(text, date):
    assert [value.date for value in find_values(text)] == [date]


def test_a_verb_is_no_month():
    assert [value.number for value in find_values("you may 3 times")] == [Decimal(3)]


def test_an_exacter_date_says_a_coarser_one_and_its_year():
    day, month, year = (find_values(text)[0] for text in ("May 3, 2023", "May 2023", "2023"))
    assert day.implies(month)
    assert day.implies(year)
    assert not month.implies(day)
    assert not year.implies(day)


def test_equal_values_become_the_same_word():
    assert normalize_values("It cost $1,577.00.") == normalize_values("it cost 1.577 thousand")
    assert normalize_values("on 2023-05-03") == normalize_values("on May 3, 2023")
    assert normalize_values("15%") != normalize_values("15")


@given(st.text(alphabet="0123456789.,-/ 년월일만억조May%k", max_size=80))
def test_values_never_overlap_whatever_the_text(text):
    found = find_values(text)
    assert all(one.end <= other.start for one, other in pairwise(found))


def test_a_run_of_more_than_forty_digits_is_no_value_whatever_stands_around_it():
    assert [value.number for value in find_values("1" + "0" * 39 + " 7")] == [Decimal(10) ** 39, 7]
    for endless in ("9" * 1_100_000, "0." + "9" * 1_100_000, "1" + ",000" * 300_000):
        assert [value.number for value in find_values(f"{endless} 7")] == [7]
    assert [value.number for value in find_values("1억" + "9" * 1_100_000 + " 7")] == [1, 7]


def test_token_f1_by_hand():
    assert best_overlap("Lake Havasu City in Arizona", ("Lake Havasu City, Arizona",)).f1 == pytest.approx(8 / 9)
    assert best_overlap("1920", ("10 January 1920",)).f1 == 0.5
    assert best_overlap("apple apple", ("apple pear",)).f1 == 0.5
    assert best_overlap("nothing alike", ("Tybalt",)).f1 == 0.0
    assert best_overlap("", ("Tybalt",)).f1 == 0.0


def test_yes_and_no_count_only_as_the_whole_answer():
    assert best_overlap("no, they are not", ("no",)).f1 == 0.0
    assert best_overlap("No.", ("no",)).f1 == 1.0


def test_what_normalises_to_nothing_is_compared_as_it_stands():
    assert exact_match("A.", ("A",)) == best_overlap("A.", ("A",)).f1 == 1.0
    assert exact_match("A.", ("The",)) == 0.0
    assert exact_match("!", ("?",)) == 0.0
    assert exact_match("!", ("！",)) == 1.0


def test_the_best_of_the_accepted_answers_counts():
    assert best_overlap("North Island", ("South Island", "the North Island")).f1 == 1.0
    assert exact_match("North Island", ("South Island", "the North Island")) == 1.0
    assert best_overlap("North Island", ()).f1 == 0.0


@each(("text", "answer", "expected"), [
    ("in north oslo", "oslo", True), ("in osloer", "oslo", False), ("répété", "été", False), ("", "x", False),
    ("x", "", False), ("수도는 서울이다", "서울", True), ("신서울역", "서울", False),
    ("신서울역이다", "서울역이다", True), ("他搬走了灯油", "灯油", True),
    ("首都は東京です", "東京", True), ("เมืองหลวงคือกรุงเทพ", "กรุงเทพ", True)])
def test_an_answer_stands_in_a_text_by_the_rule_of_its_script(text, answer, expected):
    assert contains_answer(text, answer) is expected


def f1_and_em(text, *answers, scoring="corrected"):
    found = score(Scored("answered", True, text, answers=answers), scoring, ("overlap", "squad"))
    assert (found["f1"], found["em"]) == (found["squad_f1"], found["squad_em"])
    return found["f1"], found["em"]


@pytest.mark.parametrize(("text", "answer", "expected"), [
    ("서울시 강남", "서울 강남", 8 / 9),  # 4 of 5 characters, 4 of 4
    ("강남", "서울 강남", 2 / 3),  # in whatever order: 2 of 2, 2 of 4
    ("'2021년'에 세운 탑", "《2021년》", 5 / 7),  # 5 of 9, 5 of 5
    ("THE 탑", "the 탑", 1.0), ("모른다", "서울", 0.0)])
def test_f1_of_a_korean_answer_is_korquads_over_characters(text, answer, expected):
    assert f1_and_em(text, answer, scoring="as-published")[0] == pytest.approx(expected)
    assert f1_and_em(text, answer)[0] == pytest.approx(expected)


@pytest.mark.parametrize(("text", "answer", "published", "corrected"), [
    ("“Bells”", "Bells", (0.0, 0.0), (1.0, 1.0)), ("the “Red” Bells", "Red Bells", (0.5, 0.0), (1.0, 1.0)),
    ("Papa Gino’s", "Papa Gino's", (0.5, 0.0), (1.0, 1.0)), ("１２", "12", (0.0, 0.0), (1.0, 1.0)),
    ("The B.B.C., in full", "bbc in full", (1.0, 1.0), (1.0, 1.0))])
def test_as_published_no_more_than_ascii_is_normalised(text, answer, published, corrected):
    assert f1_and_em(text, answer, scoring="as-published") == pytest.approx(published)
    assert f1_and_em(text, answer) == pytest.approx(corrected)


@pytest.mark.parametrize(("text", "answer"), [
    ("-5", "5"), ("1.5", "15"), ("$1.50", "$150"), ("−3.5%", "3.5%"), ("12,5", "125"), ("2.50 km", "250 km")])
def test_corrected_exact_match_and_f1_tell_signs_and_decimal_points(text, answer):
    assert f1_and_em(text, answer, scoring="as-published")[1] == float("−" not in text)
    assert f1_and_em(text, answer)[1] == 0.0
    assert f1_and_em(text, answer)[0] < 1.0


@pytest.mark.parametrize(("text", "answer"), [
    ("−5", "-5"), ("1,577", "1577"), ("$1.50", "1.50"), ("12,5", "12.5"), ("pages 10-28", "pages 10-28")])
def test_corrected_exact_match_takes_other_marks_of_the_same_number(text, answer):
    assert f1_and_em(text, answer) == (1.0, 1.0)


@pytest.mark.parametrize(("text", "answer", "expected"), [
    ("北京市", "北京", 4 / 5), ("東京都", "東京", 4 / 5), ("กรุงเทพฯ", "กรุงเทพ", 14 / 15), ("ពេញ ភ្នំ", "ភ្នំពេញ", 1.0),
    ("ລາວ", "ໄທ", 0.0), ("ရန်ကုန်", "ရန်ကုန်", 1.0), ("1949年", "1949", 8 / 9)])
def test_corrected_f1_of_scripts_without_spaces_is_over_characters(text, answer, expected):
    assert f1_and_em(text, answer)[0] == pytest.approx(expected)


@pytest.mark.parametrize(("question", "text", "answer", "f1", "em"), [
    ("언제?", "1989년", "1989", 8 / 9, 0.0), ("언제?", "1988", "1989", 3 / 4, 0.0),
    (None, "1989년", "1989", 8 / 9, 0.0),
    ("어디?", "the 탑", "탑", 2 / 5, 0.0), ("누구?", "《Kim》", "Kim", 1.0, 1.0), ("When?", "1988", "1989", 0.0, 0.0),
    ("Who?", "김 Kim", "Kim", 2 / 3, 0.0)])  # by words, as in SQuAD
def test_korquads_rule_holds_for_korean_questions_whatever_the_script_of_the_answer(question, text, answer, f1, em):
    item = Scored("answered", True, text, answers=(answer,), question=question)
    found = score(item, "as-published", ("overlap", "squad"))
    assert (found["f1"], found["em"]) == (found["squad_f1"], found["squad_em"]) == (pytest.approx(f1), em)
