"""Reading how relevant a model says that a passage is: a grade from 0 to 3, those of the TREC Deep Learning track."""
from __future__ import annotations

import re
from typing import Literal

Grade = Literal[0, 1, 2, 3]
LOWEST: Grade = 0
_GRADES: dict[str, Grade] = {"0": 0, "1": 1, "2": 2, "3": 3}
_EMPHASIS = r"[\s*_`#>:：=\"'()\[\].]{0,8}"
_GRADE = rf"(?:(?:relevance |final )?grade{_EMPHASIS})?([0-3])(?: ?/ ?3)?"
_LINE = re.compile(_EMPHASIS + _GRADE + _EMPHASIS, re.IGNORECASE)


def read_grade(text: str) -> Grade | None:
    """The grade of a reply without its thinking; None where no line says one, or two lines say different ones."""
    found = {match[1] for line in text.splitlines() if (match := _LINE.fullmatch(line.strip()))}
    return _GRADES[found.pop()] if len(found) == 1 else None
