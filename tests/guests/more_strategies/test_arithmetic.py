"""Arithmetic that a model wrote: exact, bounded, and never run as code."""
import operator
from datetime import date
from fractions import Fraction

import pytest
from each_case import each
from growth import grows_linearly
from hypothesis import given
from hypothesis import strategies as st

from ragbed.experiments.guests.more_strategies.arithmetic import ProgramLine, Unworkable, evaluate, run, shown_value


@each(("text", "value"), [
    # Python's precedence, worked out exactly
    ("0.1 + 0.2", "0.3"), ("2 + 3 * 4", "14"), ("(2 + 3) * 4", "20"), ("-2**2", "-4"), ("2**-1", "0.5"),
    ("2**3**2", "512"), ("7 // 2", "3"), ("-7 // 2", "-4"), ("-7 % 3", "2"), ("7%3", "1"), ("7 % -3", "-2"),
    ("5 - -3", "8"), ("--5", "5"), ("10 / 3", "3.33333333333"), ("1 / 8", "0.125"), ("2 / 3", "0.666666666667"),
    (".5 + 3.", "3.5"), ("1e3 + 1.5E-2", "1000.015"), ("1_000 + 1", "1001"), ("1 < 2", "true"), ("2 != 2.0", "false"),
    ("3 >= 3", "true"), ("1/3 == 2/6", "true"), ("0 ** 0", "1"), ("10**30", "1e+30"),
    ("12345678901234567890", "12345678901234567890"),
    ("1 / 3000000000000", "3.33333333333e-13"), ("-1/8", "-0.125"),
    # as people write
    ("1,234.5 * 2", "2469"), ("$3.2 million / 2", "1600000"), ("2 billion", "2000000000"), ("12%", "0.12"),
    ("12% of 50", "6"), ("5% - 3%", "0.02"), ("10% * 50", "5"), ("(4 + 6)%", "0.1"), ("6 × 7 ÷ 2 − 1", "20"),
    ("2^10", "1024"), ("350 [1] + 2 [1, 3]", "352"), ("₩1,000,000 + €5", "1000005"), ("3 hundred", "300"),
    ("3 ≤ 4", "true"), ("7 %", "0.07"),
    # functions
    ("min(3, 1, 2)", "1"), ("max([3, 1], 7)", "7"), ("sum([1, 2, 3])", "6"), ("sum()", "0"), ("mean(1, 2)", "1.5"),
    ("average(1, 2, 3)", "2"), ("median(5, 1, 3)", "3"), ("median(1, 2, 3, 4)", "2.5"), ("abs(-3)", "3"),
    ("round(2.5)", "3"), ("round(-2.5)", "-3"), ("round(2.675, 2)", "2.68"), ("round(1234, -2)", "1200"),
    ("floor(-1.5)", "-2"), ("ceil(1.2)", "2"), ("sqrt(16)", "4"), ("sqrt(2)", "1.41421356237"), ("count(4, 5)", "2"),
    ("pow(2, 5)", "32"), ("8 ** (1/3)", "2"), ("round(1.5 ** 0.5, 4)", "1.2247"), ("0 ** 0.5", "0"),
    ("sum(1000, 2000.5)", "3000.5"), ("max(min(1, 2), 0)", "1"),
    # dates
    ("2024-03-01 - 2024-02-28", "2"), ("days(2024-02-28, 2024-03-01)", "2"), ("date(2020, 1, 31) + 1", "2020-02-01"),
    ("2024-01-01 - 1", "2023-12-31"), ("years(1815-12-10, 1852-11-27)", "36"), ("years(1852-11-27, 1815-12-10)", "-36"),
    ("years(2000-02-29, 2001-02-28)", "0"), ("2020-01-01 < 2020-01-02", "true"),
    ("min(2020-01-01, 2019-05-01)", "2019-05-01"), ("(2021-01-01 - 2020-01-01) / 2", "183")])
def test_expressions_are_worked_out_exactly_and_read_as_people_mean_them(text, value):
    assert shown_value(evaluate(text, {})) == value


@each(("text", "why"), [
    ("1 / 0", "division by zero"), ("1 // 0", "division by zero"), ("1 % 0", "division by zero"),
    ("0 ** -1", "division by zero"), ("(-8) ** (1/3)", "no such root"), ("9**9**9", "exponent is at most"),
    ("2**-2000", "exponent is at most"), ("9**1000", "too large"), ("1e300 * 1e300 * 1e300", "too large"),
    ("(10**590)**1.5", "too large"), ("9" * 61, "at most 60 digits"), ("1e999999999", "at most 60 digits"),
    ("1e+0000999999999", "at most 60 digits"), ("(" * 10_000 + "1" + ")" * 10_000, "at most 1000 characters"),
    ("(" * 400 + "1" + ")" * 400, "at most 40 deep"), ("-" * 900 + "1", "at most 40 deep"),
    ("2**" * 300 + "1", "at most 40 deep"), ("sum([" * 99 + "1" + "])" * 99, "at most 40 deep"),
    ("٣ + 1", "cannot be read"), ("1٣", "cannot be read"), ("5²", "cannot be read"), ("½", "no value"),
    ("__import__('os').system('x')", "cannot be read"), ("__import__(1)", "no function"), ("eval(1)", "no function"),
    ("(1).real", "cannot be read"), ("a.b", "cannot be read"), ("lambda: 1", "cannot be read"),
    ("[1 for x in 2]", "expected"), ("1 if 1 else 2", "out of place"), ("1; 2", "cannot be read"), ("x := 1", "cannot"),
    ("nan", "no value"), ("inf - inf", "no value"), ("1 and 2", "out of place"), ("'a' * 9", "cannot be read"),
    ("", "expected"), ("1 +", "expected"), ("(1", "expected"), ("1)", "out of place"), ("1 2", "out of place"),
    ("1 < 2 < 3", "out of place"), ("(1 < 2) + 1", "true is no number"), ("1,2345", "out of place"),
    ("max(1,234)", "two ways"), ("min()", "takes 1 or more"), ("abs(1, 2)", "takes 1 values"),
    ("2024-02-30", "no date"),
    ("date(1, 1, 1) - 1", "no such date"), ("2024-01-01 + 0.5", "whole number of days"),
    ("2024-01-01 + 2024-01-01", "no number"), ("2024-01-01 * 2", "no number"), ("2024-01-01 < 5", "only numbers"),
    ("years(1, 2)", "no date"), ("round(1, 0.5)", "whole number of places"), ("round(1, 99)", "whole number of places"),
    ("date(2020.5, 1, 1)", "no whole number"), ("1e", "cannot be read"), ("0x10", "cannot be read"), ("1j", "cannot"),
    ("5 [1", "expected"), ("\x00", "cannot be read"), ("sum([])", "expected"), ("date(10**50, 1, 1)", "no date")])
def test_what_cannot_be_worked_out_says_why(text, why):
    with pytest.raises(Unworkable, match=why):
        evaluate(text, {})


NUMBERS = st.integers(0, 10**6).map(lambda n: (str(n), Fraction(n))) | st.decimals(
    0, 1_000, places=2).map(lambda d: (str(d), Fraction(d)))
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
         "%": operator.mod}


def joined(parts):
    """Two expressions with a sign between; None stands for the value of what divides by zero."""
    (left, one), sign, (right, other) = parts
    text = f"({left} {sign} {right})"
    if one is None or other is None or (sign in ("/", "//", "%") and other == 0):
        return text, None
    return text, Fraction(SIGNS[sign](one, other))


EXPRESSIONS = st.recursive(NUMBERS, lambda inner: st.one_of(
    st.tuples(inner, st.sampled_from(sorted(SIGNS)), inner).map(joined),
    inner.map(lambda one: (f"-{one[0]}", None if one[1] is None else -one[1]))), max_leaves=12)


@given(EXPRESSIONS)
def test_it_agrees_with_fractions(expression):
    text, value = expression
    if value is None:
        with pytest.raises(Unworkable, match="division by zero"):
            evaluate(text, {})
    else:
        assert evaluate(text, {}) == value


@given(st.text(max_size=60) | st.text("0123456789+-*/%().,[]e <>=abc$", max_size=60))
def test_any_text_is_a_value_or_says_why_it_is_none(text):
    for line in run(f"x = {text}"):
        assert (line.value is None) == bool(line.error)
        assert isinstance(line.value, Fraction | bool | date | None)
        assert len(str(line)) < 1_500


def test_a_program_is_worked_out_line_by_line_in_the_forms_that_models_write():
    lines = run("""Here is the program:
```python
1. revenue = 1,200 million  # from [2]
**base = $1,000 million [1]**
Growth rate = (revenue - base) / base = 20%
- `percent = Growth_rate * 100`;
if revenue == base
매출 = 5
total = 매출 + price
price = 2
total = 매출 + price.
```""")
    assert [(line.name, line.error or shown_value(line.value)) for line in lines] == [
        ("revenue", "1200000000"), ("base", "1000000000"), ("Growth_rate", "0.2"), ("percent", "20"), ("매출", "5"),
        ("total", "price has no value yet"), ("price", "2"), ("total", "7")]
    assert str(lines[2]) == "Growth_rate = (revenue - base) / base = 0.2"
    assert str(lines[4]) == "매출 = 5"
    assert str(lines[5]) == "total = 매출 + price: price has no value yet"


def test_a_line_that_fails_takes_its_name_s_older_value_away():
    assert [line.error for line in run("a = 1\na = 1 / 0\nb = a")][1:] == ["division by zero", "a has no value yet"]


def test_a_program_is_bounded():
    assert len(run("\n".join(f"x{n} = {n}" for n in range(900)))) == 40
    assert run("x = 1 + " + "1" * 3_000)[0].error == "an expression has at most 1000 characters"
    assert run("NONE") == run("") == ()
    doubling = run("a = 1e200\n" + "\n".join("a = a * a" for _ in range(30)))
    assert {line.error for line in doubling} == {"", "the number gets too large", "a has no value yet"}
    assert len(str(ProgramLine("x", "1 + " * 500, error="too long"))) < 250


@each("piece", ["=", "a = ", "x" , " ", "1,234", "1_", "(", "* ", "\n", "a b "])
def test_a_monstrous_program_takes_no_time(piece):
    grows_linearly(lambda n: run("a = " + piece * (n // len(piece))), 12_000)
