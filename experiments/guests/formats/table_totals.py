"""Find totals in a table by arithmetic, so that their names and language do not matter."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain, combinations, product

Numbers = Sequence[Sequence[Decimal | None]]
_MAX_MIXED = 5  # largest number of parts of a total that adds some and subtracts others
_DIGITS = 3  # numbers with fewer significant digits may be equal by chance


def find_totals(rows: Numbers) -> list[tuple[int, ...]]:
    """Return groups of cells in which each can be computed from the others: a total with its parts, or equal numbers.

    `rows` has the numbers of a table, None for other cells, and the cells are numbered row by row. A total comes after
    or before its parts in a row or a column. Its parts may be totals themselves. A number with fewer than three
    significant digits is not taken as equal to another one."""
    width = max(map(len, rows), default=0)
    cells = [(at * width + place, number) for at, row in enumerate(rows) for place, number in enumerate(row) if number]
    lines = chain(([one for one in cells if one[0] // width == at] for at in range(len(rows))),
                  ([one for one in cells if one[0] % width == place] for place in range(width)))
    found = {group for line in lines for order in (line, line[::-1]) for group in _totals_of(order)}
    equal = {(first, second) for (first, one), (second, other) in combinations(cells, 2)
             if abs(one) == abs(other) and _is_precise(one)}
    return sorted(found | equal)


def _totals_of(line: Sequence[tuple[int, Decimal]]) -> Iterator[tuple[int, ...]]:
    """Yield each total of a row or column after its parts. A total replaces its parts for the totals that follow."""
    open_parts: list[tuple[int, Decimal]] = []
    for place, number in line:
        sizes = range(len(open_parts), 1, -1)
        size = next((size for size in sizes if _is_total(number, [part for _, part in open_parts[-size:]])), 0)
        if size:
            yield (*(at for at, _ in open_parts[-size:]), place)
            del open_parts[-size:]
        open_parts.append((place, number))


def _is_total(number: Decimal, parts: Sequence[Decimal]) -> bool:
    """Return whether the number is the sum of the parts, or the first part minus the others. If it is precise and there
    are few parts, any signs will do. A sum of rounded numbers may differ by one in the last place."""
    unit = Decimal(1).scaleb(min(int(one.as_tuple().exponent) for one in (number, *parts)))
    near = unit if abs(number) >= 100 * unit else Decimal(0)
    sums = (sum(parts), parts[0] - sum(parts[1:]))
    if any(abs(number - one) <= near for one in sums):
        return True
    return len(parts) <= _MAX_MIXED and _is_precise(number) and any(
        number == parts[0] + sum(sign * part for sign, part in zip(signs, parts[1:], strict=True))
        for signs in product((1, -1), repeat=len(parts) - 1))


def _is_precise(number: Decimal) -> bool:
    return len(str(abs(number)).replace(".", "").strip("0")) >= _DIGITS
