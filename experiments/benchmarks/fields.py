"""Helpers for loaders: sub-question chains, passages as one-chunk documents, and multiple-choice options."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from ragbed.documents.rows import Row
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.question import Gold
from ragbed.strategies.normalizing import straighten

Options = tuple[tuple[str, str], ...]
Chain = Literal["masked", "placeholders", "plain"]
REFERENCE = re.compile(r"#(\d{1,2})(?!\d)")
_QUALIFIER = re.compile(r"\s*\([^()]*\)$")
_SHORTEST = 2
_COMMON = ("yes", "no")


def mask_answers(sub_questions: Sequence[str], sub_answers: Sequence[str]) -> tuple[tuple[str, ...], Chain]:
    """Return the sub-questions with earlier sub-answers replaced by `#N`, and the kind of the chain.

    Matching ignores case and a title's qualifier, as in `Superstore (TV series)`. Answers of one character, `yes` and
    `no` are too common to match. The kind is `masked` if references were inserted, `placeholders` if the record already
    has `#N`, and `plain` if sub-questions do not literally contain earlier answers.
    """
    masked = tuple(_mask(text, sub_answers[:place]) for place, text in enumerate(sub_questions))
    if masked != tuple(sub_questions):
        return masked, "masked"
    return masked, "placeholders" if any(map(REFERENCE.search, masked)) else "plain"


def fill_references(text: str, answers: Sequence[str]) -> str:
    """Return the sub-question with each `#N` replaced by the N-th answer."""
    def one(found: re.Match[str]) -> str:
        place = int(found[1])
        return answers[place - 1] if 1 <= place <= len(answers) else found[0]

    return REFERENCE.sub(one, text)


def _mask(text: str, earlier: Sequence[str]) -> str:
    """Replace earlier answers by `#N`: longer ones first, since they may contain shorter ones."""
    forms = [(form, place) for place, answer in enumerate(earlier, start=1)
             for form in dict.fromkeys((answer.strip(), _QUALIFIER.sub("", answer.strip())))
             if len(form) >= _SHORTEST and form.lower() not in _COMMON]
    forms.sort(key=lambda form: (-len(form[0]), -form[1]))
    if not forms:
        return text
    either = "|".join(f"({re.escape(form)})" for form, _ in forms)
    return re.sub(rf"(?<![\w#])(?:{either})(?!\w)", lambda found: f"#{forms[(found.lastindex or 1) - 1][1]}", text,
                  flags=re.IGNORECASE)


MAX_LETTERS = 26


def passage(text: str, title: str = "", id: str | None = None) -> tuple[Document, Chunk]:
    """Return a passage as a plain-text document and its one chunk, which begins with the title.

    Without `id`, equal passages share one document across questions. The document's source is the title, or `id`.
    """
    content = f"{title}\n{text}" if title else text
    name = digest("passage", title, text)[:16] if id is None else id
    document = Document(name, (title if id is None else "") or name, title, "", content)
    return document, Chunk.of(document, "plain", 0, len(content))


def pieces(document: Document, texts: Iterable[str]) -> dict[int, Chunk]:
    """Make a chunk of the title and each text that is not blank. Return the chunks by the position of the text."""
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


def make_tags(**values: str) -> dict[str, tuple[str, ...]]:
    """Return single-valued tags; empty values are left out."""
    return {name: (value,) for name, value in values.items() if value}


def passages(pairs: Iterable[tuple[str, str]]) -> tuple[list[Document], tuple[Chunk, ...]]:
    """Return the documents and the chunks of passages, given as title and text."""
    made = [passage(text, title) for title, text in pairs]
    return [document for document, _ in made], tuple(chunk for _, chunk in made)


def letter_options(options: Iterable[str]) -> Options:
    """Return the options with the labels A, B, C and so on, at most `MAX_LETTERS`."""
    return tuple((chr(ord("A") + at), option) for at, option in enumerate(options))


def choices(row: Row, field: str, most: int = MAX_LETTERS) -> Options:
    """Return the options of a record, which has a list of texts or a mapping from A, B, C and so on to texts; nulls are
    skipped. Raises BenchmarkError if they are malformed, fewer than two, or more than `most`."""
    stated = row.fields.get(field)
    if isinstance(stated, dict):
        made = tuple((label, stated[label]) for label in sorted(stated) if stated[label] is not None)
    else:
        made = letter_options(stated) if isinstance(stated, list) else ()
    texts = [text for _, text in made]
    if not 2 <= len(made) <= most or made != letter_options(texts) or not all(isinstance(text, str) for text in texts):
        row.fail(field, f"2 to {most} texts, in a list or with the keys A, B, C and so on", stated)
    return made


def find_letter(row: Row, options: Options) -> str:
    """Return the letter of the right option. Raises BenchmarkError if the record's answer is not one of the options."""
    labels, answer = [label for label, _ in options], row.text("answer").strip()
    return answer if answer in labels else row.fail("answer", f"one of the letters {', '.join(labels)}", answer)


def unique_id(id: str, seen: Counter[str]) -> str:
    """Return the id, with `~2`, `~3` and so on if it was seen before."""
    seen[id] += 1
    return id if seen[id] == 1 else f"{id}~{seen[id]}"


_LABEL = re.compile(r"[^\W_]{1,20}")


def parse_options(row: Row, options: Sequence[str] | dict[str, str]) -> Options:
    """Return label and text of each option; a list gets the labels A to Z. Raises BenchmarkError if labels or texts are
    ambiguous, or if a label could not be recognised in a reply."""
    if not options:
        return ()
    if not isinstance(options, dict) and len(options) > MAX_LETTERS:
        row.fail("options", f"at most {MAX_LETTERS} texts, or a label before each, as in {{\"1\": ...}}", len(options))
    made = tuple(options.items()) if isinstance(options, dict) else letter_options(options)
    labels = [straighten(label).casefold() for label, _ in made]
    texts = [text.strip() for _, text in made]
    for label, _ in made:
        if not _LABEL.fullmatch(label):
            row.fail("options", "labels of 1 to 20 letters and digits", label)
    if len(made) < 2 or not all(texts):
        row.fail("options", "two texts or more, none of them blank", texts)
    if len(set(labels)) < len(made) or len(set(texts)) < len(made):
        row.fail("options", "labels that differ in more than their case, and texts that differ", dict(made))
    return made


def find_label(row: Row, answers: tuple[str, ...], options: Options) -> tuple[str, ...]:
    """Return the label of the right option, its text, and alternative answers. The record may name the option by label
    or text. Raises BenchmarkError if the first answer does not name exactly one option, or a later one another."""
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
    """Join sentences into one text. In some files each sentence begins with a space, in others not."""
    return "".join(sentence if not place or sentence[:1].isspace() else f" {sentence}"
                   for place, sentence in enumerate(sentences))
