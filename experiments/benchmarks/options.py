"""The options of one's own multiple-choice questions, and which of them an answer names."""
from __future__ import annotations

import re
from collections.abc import Sequence

from documents.rows import Row
from experiments.benchmarks.material import MOST_LETTERS, lettered
from strategies.option_text import plain

Options = tuple[tuple[str, str], ...]
_LABEL = re.compile(r"[^\W_]{1,20}")


def stated_options(row: Row, options: Sequence[str] | dict[str, str]) -> Options:
    """Label and text of each; a list gets the labels A to Z. None where there are none.

    Raises:
        BenchmarkError: a label or a text could not be told from another, or not be read in a reply.
    """
    if not options:
        return ()
    if not isinstance(options, dict) and len(options) > MOST_LETTERS:
        row.fail("options", f"at most {MOST_LETTERS} texts, or a label before each, as in {{\"1\": ...}}", len(options))
    made = tuple(options.items()) if isinstance(options, dict) else lettered(options)
    labels = [plain(label).casefold() for label, _ in made]
    texts = [text.strip() for _, text in made]
    for label, _ in made:
        if not _LABEL.fullmatch(label):
            row.fail("options", "labels of 1 to 20 letters and digits", label)
    if len(made) < 2 or not all(texts):
        row.fail("options", "two texts or more, none of them blank", texts)
    if len(set(labels)) < len(made) or len(set(texts)) < len(made):
        row.fail("options", "labels that differ in more than their case, and texts that differ", dict(made))
    return made


def with_label(row: Row, answers: tuple[str, ...], options: Options) -> tuple[str, ...]:
    """The label of the right option, its text, and other words for it; the line may name the option by either.

    Raises:
        BenchmarkError: the first answer names no option, or two; or another names another option.
    """
    if not answers:
        return ()
    named = [label for label, text in options if answers[0].strip() in (label, text.strip())]
    if len(named) != 1:
        row.fail("answer", f"one of {', '.join(label for label, _ in options)}, or the text of one", answers[0])
    label = named[0]
    for answer in answers[1:]:
        if any(answer.strip() in (other, text.strip()) for other, text in options if other != label):
            row.fail("answers", f"other words for the option {label}", answer)
    return tuple(dict.fromkeys((label, dict(options)[label], *answers)))
