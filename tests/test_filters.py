"""Filters: the language of parse_conditions, its one form, and that they decide before a search."""
import datetime
import re
import time

import numpy as np
import pytest
from each_case import each
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ragbed.documents import Chunk, SettingsError
from ragbed.retrieval.filters.filtered_collection import FilteredCollection, filter_collection
from ragbed.retrieval.filters.parser import Where, normalise_filter, parse_conditions

PAGES = [("annual.pdf", 1, 2023, "Annual report"), ("annual.pdf", 7, 2023, "Annual report"),
         ("notes/old.html", None, 2019, "Old and new"), ("notes/[2].txt", 3, None, "매출 보고서")]


class Pages:
    """A collection of four pages, all as near as the last is far."""

    content, among, embedder = "pages", None, None
    chunks = tuple(Chunk(str(row), source, "plain", 0, 1, "x") for row, (source, *_) in enumerate(PAGES))

    def texts(self):
        return iter("xxxx")

    def document(self, id):
        raise KeyError(id)

    def metadata(self):
        for source, page, year, title in PAGES:
            yield {"source": source, "page": page, "title": title, "draft": page == 7,
                   "date": f"{year}-05-31" if year else None, **({"year": year} if year else {})}

    def nearest(self, queries, k, among=None):
        return [[(row, 1 - row / 10) for row in range(4) if among is None or among[row]][:k] for _ in queries]


def left(where):
    form = normalise_filter(where)
    assert normalise_filter(list(form)) == form
    found = filter_collection(Pages(), form)
    return [row for row, _ in found.nearest([None], 10)[0]]


@each(("where", "rows"), [
    ("page >= 3", [1, 3]), ("page > 3", [1]), ("page < 3", [0]), ("page <= 3", [0, 3]), ("page = 3.0", [3]),
    ("page == 3", [3]), ("page != 3", [0, 1, 2]), ("page=none", [2]), ("page != none", [0, 1, 3]),
    ("source = notes/*", [2, 3]), ("source = ANNUAL.pdf", [0, 1]), ("source = notes/[2].*", [3]),
    ("source = *.????", [2]), ("source != *.pdf", [2, 3]), ('source = "notes/*"', []),
    ("title ~ report", [0, 1]), ("title !~ report", [2, 3]), ("title ~ 보고", [3]), ('title = "old and new"', [2]),
    ("year >= 2020", [0, 1]), ("year < 2020", [2]), ("year = 20*", [0, 1, 2]), ("year = none", [3]),
    ("draft = true", [1]), ("draft = 1", []), ("draft = false", [0, 2, 3]), ("draft > 0", []),
    ("date >= 2023", [0, 1]), ("date > 2023", []), ("date <= 2019-05", [2]), ("date < 2019-05-31", []),
    ("date >= 2019-06-01", [0, 1]), ("title >= n", [2, 3]), ("title >= 3", []),
    ("year = 2023 and page > 1", [1]), ("year = 2023 AND page > 1 and draft = false", []), ("page > 99", []),
    ("page = 3 or page = 7", [1, 3]), ("page in (3, 7)", [1, 3]), ("page IN [ 3,7 ]", [1, 3]), ("page in (3.0,)", [3]),
    ("page not in (3, 7)", [0, 2]), ("page in (none, 3)", [2, 3]), ('title in ("Old and new", Annual*)', [0, 1, 2]),
    ("page = 7 and year = 2023 or year = 2019", [1, 2]), ("page = 7 and (year = 2019 or title ~ annual)", [1]),
    ("(page = 1 or page = 7) and (year = 2023)and draft = true", [1]), ("draft in (true)", [1]),
    ({"year": {"in": [2019, 2024]}}, [2]), ({"year": {"not in": [2019, 2023]}}, [3]),
    ({"or": [{"page": 1}, {"year": 2019, "page": "none"}, "page = 3"]}, [0, 2, 3]),
    ({"or": [{"page": 1}, {"page": 7}], "draft": False}, [0]), ("page = 3" + " " * 50_000, [3]),
    (f"page in ({', '.join(map(str, range(3, 1_003)))})", [1, 3]),
    ("year >= 2020-05", [0, 1]), ("year > 2024-05", []), (["source = annual.pdf", "page = 7"], [1]), ([], [0, 1, 2, 3]),
])
def test_conditions_are_met_by_values(where, rows):
    assert left(where) == rows


@each(("where", "complaint"), [
    ("pages >= 3", "unknown field 'pages'; did you mean 'page'? the fields are: date, draft, page, source, title, ye"),
    ("page", "'page': expected a condition such as `page >= 3 and source = reports/*.pdf` or `year in (2022, 2023)`"),
    ("page >=", "'page >=': expected"), (">= 3", "'>= 3': expected"), ("", "'': expected"),
    ("page >= 3 and", "expected"), ("and page >= 3", "field 'and page'"),
    ("page >= 3 and source", "'source': expected"), ("page => 3", "expected"), ("page = < 3", "expected"),
    ("page = 3 or", "expected"), ("or page = 3", "field 'or page'"), ("(page = 3", "not closed"),
    ("page = 3)", "unexpected"), ("page = (3", "expected"), ("page in ()", "expected"), ("page in (3, >4)", "expected"),
    ("page in (3,, 4)", "expected"), ('page in (3, x"y)', "expected"), ("page in 3", "expected"),
    ("(page = 3) page = 4", "unexpected"),
    ("titel in (a, b)", "unknown field 'titel'; did you mean 'title'?"),
    ("page = 3 or yeer = 4", "did you mean 'year'?"),
    ("(" * 17 + "page = 3" + ")" * 17, "more than 16 levels"), ("(" * 99_999, "more than 16 levels"),
    ("page = 3" + " or page = 4" * 9_000, "at most 100,000"), ("page = " + "a" * 2_000, "at most 2,000"),
    (f"page in ({', '.join(map(str, range(1_001)))})", "more than 1,000 conditions"),
    (["page = 1"] * 1_001, "more than 1,000 conditions"),
    ('title = "report', "expected"), ('title = 5" pipe', "expected"),
    ("page >= 3, year >= 2022", "expected"),
])
def test_what_cannot_be_read_or_is_not_known_says_so_in_one_line(where, complaint):
    with pytest.raises(SettingsError, match=re.escape(complaint)) as error:
        left(where)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("where", ["page >= abc", "year >= abc and page = 1", 'page < "3"', "page = 9 and year > x"])
def test_a_number_is_not_compared_with_a_text(where):
    with pytest.raises(SettingsError, match=r"'(page|year)' is numeric, but '.*' is text"):
        left(where)


def test_there_is_one_form():
    form = ("page >= 3", "source = reports/*", 'title ~ "a and b"')
    assert normalise_filter('title ~ "a and b" and source = reports/* AND page>=3 and page >= 3') == form
    assert normalise_filter({"source": "reports/*", "page": ">= 3", "title": ['~ "a and b"']}) == form
    assert normalise_filter({"page": ">=3", "title": "~ a and b", "source": "= reports/*"}) == form
    assert normalise_filter(list(form)) == normalise_filter(form) == form
    assert normalise_filter("year = 2 or (year = 1 or year = 2)") == normalise_filter({"year": {"in": [2, 1]}}) == (
        "year in (1, 2)",)
    assert normalise_filter("b = 1 and (a = 2 or c = 3) and b = 1") == ("a = 2 or c = 3", "b = 1")
    assert normalise_filter({"title": {"in": ["a, b", "this or that", "(c"]}}) == (
        'title = "(c" or title = "this or that" or title = a, b',)
    assert normalise_filter("year not in (1, 2)") == ("year != 1", "year != 2")
    several = {"year": [">= 2020", "< 2023"], "draft": False, "date": datetime.date(2024, 5, 31), "page": None}
    assert normalise_filter(several) == (
        "date = 2024-05-31", "draft = false", "page = none", "year < 2023", "year >= 2020")
    assert normalise_filter({"fiscal year": 2022, "profit and loss": 3, "a=b": "c"}) == (
        '"a=b" = c', '"profit and loss" = 3', "fiscal year = 2022")


@pytest.mark.parametrize("where", [3, None, [3], {"page": {"a": 1}}, {3: 3}, {"page": []}, {"page": ">="}, {"page": ""},
                                   {"": 3}, {"page": {"in": []}}, {"page": {"in": 3}},
                                   {"page": {"in": [{}]}}, {"or": [{}]}, {"or": [[3]]}, {"source": "* and *"},
                                   {"page": 10 ** 5_000}])
def test_settings_that_are_no_filter_are_refused(where):
    if where == {"page": []}:
        assert normalise_filter(where) == ()
        return
    with pytest.raises(SettingsError, match="expected"):
        normalise_filter(where)
    with pytest.raises(ValidationError, match="expected"):
        TypeAdapter(Where).validate_python(where)


@given(st.dictionaries(st.text(min_size=1, max_size=9), st.text(max_size=12) | st.integers() | st.booleans()))
def test_every_form_that_is_made_reads_back(where):
    try:
        form = normalise_filter(where)
    except SettingsError:
        return
    assert normalise_filter(list(form)) == form
    assert sorted(map(str, parse_conditions(form))) == list(form)


def test_a_narrowed_collection_is_searched_before_and_says_so():
    whole = Pages()
    found = filter_collection(whole, ("page >= 3",))
    assert found.chunks is whole.chunks
    assert found.among.tolist() == [False, True, False, True]
    assert found.nearest([None], 1) == [[(1, 0.9)]]
    assert len({whole.content, found.content, filter_collection(whole, ("page = 7",)).content}) == 3
    assert filter_collection(whole, ("page != 9",)) is whole
    twice = FilteredCollection(found, np.array([True, True, False, False]))
    assert twice.among.tolist() == [False, True, False, False]
    assert twice.nearest([None], 9, np.array([True, False, True, True])) == [[]]


@pytest.mark.parametrize("text", [
    '"' + 'a\\"' * 30_000, "page" + " " * 90_000 + "x", "(" * 90_000, 'a = "b" and ' * 8_000 + '"'])
def test_a_long_malformed_filter_is_refused_in_a_moment(text):
    started = time.process_time()
    with pytest.raises(SettingsError, match="where: "):
        parse_conditions(text)
    assert time.process_time() - started < 5
