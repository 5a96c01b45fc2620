"""What loaders share: chains of sub-questions, passages as documents of one chunk, and options."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from ragbed.documents.rows import Row
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.question import Gold
from ragbed.strategies.normalising import plain

Options = tuple[tuple[str, str], ...]
Chain = Literal["masked", "placeholders", "plain"]
REFERENCE = re.compile(r"#(\d{1,2})(?!\d)")
_QUALIFIER = re.compile(r"\s*\([^()]*\)$")
_SHORTEST = 2
_COMMON = ("yes", "no")


def chained(sub_questions: Sequence[str], sub_answers: Sequence[str]) -> tuple[tuple[str, ...], Chain]:
    """Return the sub-questions with `#N` wherever the N-th sub-answer stood as words in a later one, in any case.

    The qualifier of a title, as in `Superstore (TV series)`, may be missing there. Answers of one character, `yes` and
    `no` stand in sentences that do not mean them, and are let be. Returns the sub-questions, and what refers in them to
    earlier answers: `#N` that were put there (`masked`), `#N` of the record's own (`placeholders`), or nothing
    (`plain`): they do not depend on one another, or say an answer in other words.
    """
    masked = tuple(_masked(text, sub_answers[:place]) for place, text in enumerate(sub_questions))
    if masked != tuple(sub_questions):
        return masked, "masked"
    return masked, "placeholders" if any(map(REFERENCE.search, masked)) else "plain"


def with_references(text: str, answers: Sequence[str]) -> str:
    """Return the sub-question with each `#N` that refers to an earlier answer replaced by it; any other stays."""
    def one(found: re.Match[str]) -> str:
        place = int(found[1])
        return answers[place - 1] if 1 <= place <= len(answers) else found[0]

    return REFERENCE.sub(one, text)


def _masked(text: str, earlier: Sequence[str]) -> str:
    """The longest answer goes first, since a shorter one may be a part of it; of equal ones the last."""
    forms = [(form, place) for place, answer in enumerate(earlier, start=1)
             for form in dict.fromkeys((answer.strip(), _QUALIFIER.sub("", answer.strip())))
             if len(form) >= _SHORTEST and form.lower() not in _COMMON]
    forms.sort(key=lambda form: (-len(form[0]), -form[1]))
    if not forms:
        return text
    either = "|".join(f"({re.escape(form)})" for form, _ in forms)
    return re.sub(rf"(?<![\w#])(?:{either})(?!\w)", lambda found: f"#{forms[(found.lastindex or 1) - 1][1]}", text,
                  flags=re.IGNORECASE)


MOST_LETTERS = 26


def passage(text: str, title: str = "", id: str | None = None) -> tuple[Document, Chunk]:
    """Return a passage as a document in plain text and its one chunk, which begins with the title.

    Equal passages are one document, in whichever question they stand, unless `id` says otherwise; its source is its
    title, or `id`.
    """
    content = f"{title}\n{text}" if title else text
    name = digest("passage", title, text)[:16] if id is None else id
    document = Document(name, (title if id is None else "") or name, title, "", content)
    return document, Chunk.of(document, "plain", 0, len(content))


def pieces(document: Document, texts: Iterable[str]) -> dict[int, Chunk]:
    """Cut the texts that a passage holds in order into chunks by place, each under the title; blank ones are none."""
    heading = f"{document.title}\n" if document.title else ""
    chunks, at = {}, len(heading)
    for place, text in enumerate(texts):
        start = document.plain.index(text, at)
        at = start + len(text)
        if text.strip():
            start = at - len(text.lstrip())
            chunks[place] = Chunk.of(document, "plain", start, start + len(text.strip()), heading)
    return chunks


def gold_chunk(chunk: Chunk) -> Gold:
    """Return the gold label of a whole chunk."""
    return Gold(chunk.document, chunk.id, chunk.format, chunk.start, chunk.end)


def parted(rows: Iterable[Row], field: str) -> tuple[list[Row], list[Row]]:
    """Return the records without the field, and those with it."""
    parts: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        parts[field in row.fields].append(row)
    return parts


def tagged(**values: str) -> dict[str, tuple[str, ...]]:
    """Return tags of one value each, without those that are empty."""
    return {name: (value,) for name, value in values.items() if value}


def passages(pairs: Iterable[tuple[str, str]]) -> tuple[list[Document], tuple[Chunk, ...]]:
    """Return the documents and the chunks of passages, each given as title and text."""
    made = [passage(text, title) for title, text in pairs]
    return [document for document, _ in made], tuple(chunk for _, chunk in made)


def lettered(options: Iterable[str]) -> Options:
    """Return the options under A, B, C and so on; `MOST_LETTERS` at most."""
    return tuple((chr(ord("A") + at), option) for at, option in enumerate(options))


def choices(row: Row, field: str, most: int = MOST_LETTERS) -> Options:
    """Return the options of a record, a list of texts or texts under A, B, C and so on; null ones are left out. Raises
    BenchmarkError where they are of another form, fewer than two or more than `most`."""
    stated = row.fields.get(field)
    if isinstance(stated, dict):
        made = tuple((label, stated[label]) for label in sorted(stated) if stated[label] is not None)
    else:
        made = lettered(stated) if isinstance(stated, list) else ()
    texts = [text for _, text in made]
    if not 2 <= len(made) <= most or made != lettered(texts) or not all(isinstance(text, str) for text in texts):
        row.fail(field, f"2 to {most} texts, in a list or under A, B, C and so on", stated)
    return made


def letter_of(row: Row, options: Options) -> str:
    """Return the letter of the right option; BenchmarkError where the record's answer is none of theirs."""
    labels, answer = [label for label, _ in options], row.text("answer").strip()
    return answer if answer in labels else row.fail("answer", f"one of the letters {', '.join(labels)}", answer)


def distinct(id: str, seen: Counter[str]) -> str:
    """Return the id, with `~2`, `~3` and so on where it was seen before."""
    seen[id] += 1
    return id if seen[id] == 1 else f"{id}~{seen[id]}"


_LABEL = re.compile(r"[^\W_]{1,20}")


def stated_options(row: Row, options: Sequence[str] | dict[str, str]) -> Options:
    """Return label and text of each; a list gets the labels A to Z. Raises BenchmarkError where a label or a text could
    not be told from another, or not be read in a reply."""
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
    """Return the label of the right option, its text, and other words for it; the line may name the option by either.
    Raises BenchmarkError where the first answer names no option, or two; or another names another option."""
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


def join_sentences(sentences: Sequence[str]) -> str:
    """Join sentences to one text; some files begin each with a space, others do not."""
    return "".join(sentence if not place or sentence[:1].isspace() else f" {sentence}"
                   for place, sentence in enumerate(sentences))
