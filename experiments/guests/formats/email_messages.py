"""Parse e-mail: `.eml` files with the standard library, and Outlook's `.msg` files with olefile."""
from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.errors import MessageError
from email.header import decode_header
from email.utils import parsedate_to_datetime
from html import escape
from typing import Any

from ragbed.documents.decoding import decode
from ragbed.documents.errors import DocumentError, MissingExtra
from ragbed.documents.types import Document, FieldValue
from ragbed.experiments.guests.formats.pages import make_page, paragraphs, tag

_HEADERS = ("From", "To", "Cc", "Date")
_MAX_DEPTH = 20
_BODY = re.compile(r"<body[^>]*>(.*)</body\s*>", re.IGNORECASE | re.DOTALL)


def parse_eml(data: bytes, source: str) -> Document:
    """Read an e-mail: subject, sender, recipients, date, and its texts. Attachments are named; a forwarded message is
    read in its place. Raises DocumentError if it is not an e-mail."""
    message = message_from_bytes(data, policy=policy.compat32)
    headers = _headers(message)
    if not headers and not message.is_multipart():
        raise DocumentError(source, "not an e-mail: it has no header lines such as From and Subject")
    attached: list[str] = []
    body = "".join(_parts(message, source, attached, 0))
    return _page(headers, body, attached)


def _page(headers: dict[str, str], body: str, attached: list[str]) -> Document:
    fields: dict[str, FieldValue] = {name.lower(): value for name, value in headers.items()}
    if "date" in fields:
        fields["date"] = _iso_date(headers["Date"])
    if attached:
        fields["attachments"] = ", ".join(attached)
    return make_page(_head(headers, "h1") + body + _attachments(attached), headers.get("Subject", ""), fields)


def _head(headers: dict[str, str], heading: str) -> str:
    lines = [f"{name}: {escape(headers[name])}" for name in _HEADERS if name in headers]
    return tag(heading, headers.get("Subject", "")) + f"<p>{'<br>'.join(lines)}</p>"


def _attachments(names: list[str]) -> str:
    return f"<p>Attachments:</p><ul>{''.join(tag('li', name) for name in names)}</ul>" if names else ""


def _headers(message: Any) -> dict[str, str]:
    found = {name: _header(message, name) for name in ("Subject", *_HEADERS)}
    return {name: value for name, value in found.items() if value}


def _header(message: Any, name: str) -> str:
    return _decode_header(next((value for key, value in message.raw_items() if key.lower() == name.lower()), ""))


def _decode_header(raw: str) -> str:
    """Decode a header: encoded words, and bytes outside ASCII as UTF-8 or Windows-1252."""
    data = str(raw).encode("utf-8", "surrogateescape")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    if "=?" in text:
        with suppress(MessageError, ValueError):
            text = "".join(piece if isinstance(piece, str) else _decode_piece(piece, charset)
                           for piece, charset in decode_header(text))
    return " ".join(text.split())


def _decode_piece(piece: bytes, charset: str | None) -> str:
    try:
        return piece.decode(charset or "latin-1", "replace")
    except LookupError:
        return piece.decode("utf-8", "replace")


def _iso_date(text: str) -> str:
    """Return a date of a header as `2024-05-31T09:30:00+00:00`, which filters compare; other text as it is."""
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return text


def _parts(message: Any, source: str, attached: list[str], depth: int) -> Iterator[str]:
    """Yield the texts of a message as HTML, and collect the names of attachments."""
    if depth > _MAX_DEPTH:
        raise DocumentError(source, f"messages are nested more than {_MAX_DEPTH} deep")
    kind, name = message.get_content_type(), _file_name(message)
    payload = message.get_payload()
    if kind == "message/rfc822" and isinstance(payload, list) and payload:
        yield "<blockquote>" + _head(_headers(payload[0]), "h2")
        yield from _parts(payload[0], source, attached, depth + 1)
        yield "</blockquote>"
    elif isinstance(payload, list):
        if kind == "multipart/alternative":
            payload = _best_alternative(payload)
        for part in payload:
            yield from _parts(part, source, attached, depth + 1)
    elif name or message.get_content_disposition() == "attachment" or not kind.startswith("text/"):
        data = message.get_payload(decode=True) or b""
        attached.append(f"{name or 'without a name'} ({kind}, {len(data):,} bytes)")
    else:
        data = message.get_payload(decode=True) or b""
        if data.strip():
            text = decode(data, source, message.get_content_charset())
            yield _html_body(text) if kind == "text/html" else paragraphs(text.replace("\r\n", "\n"))


def _file_name(message: Any) -> str:
    """Return the name of an attachment without folders."""
    return re.split(r"[/\\]", _decode_header(message.get_filename() or ""))[-1]


def _best_alternative(parts: list[Any]) -> list[Any]:
    """Return the part that a reader sees, and every part that is not text, such as an invitation."""
    texts = [part for part in parts if part.get_content_type() == "text/plain"]
    rich = [part for part in parts if part.get_content_type() == "text/html" or part.is_multipart()]
    return (rich or texts)[-1:] + [part for part in parts if part not in rich and part not in texts]


def _html_body(page: str) -> str:
    """Return the body of a page, to stand inside another page."""
    found = _BODY.search(page)
    return f"<div>{found[1] if found else page}</div>"


_NAMED = {"Subject": "0037", "From": "0C1A", "Address": "0C1F", "Smtp": "5D01", "To": "0E04", "Cc": "0E03"}
_DATES = (0x0039, 0x0E06)  # properties: sent, delivered
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


def parse_msg(data: bytes, source: str) -> Document:
    """Read an e-mail that Outlook saved. Raises DocumentError if it is not one or has no readable body, and
    MissingExtra without olefile."""
    MissingExtra.check("formats", "olefile")
    import olefile

    if not data.startswith(olefile.MAGIC):
        raise DocumentError(source, "not an Outlook message")
    try:
        with olefile.OleFileIO(data) as file:
            return _outlook(file, source)
    except (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise DocumentError(source, f"a damaged Outlook message: {' '.join(str(error).split())[:200]}") from error


def _outlook(file: Any, source: str) -> Document:
    texts = {name: _property(file, "", code) for name, code in _NAMED.items()}
    address = texts.pop("Smtp") or texts["Address"]
    if address and "@" in address and address not in texts["From"]:
        texts["From"] = f"{texts['From']} <{address}>".strip()
    texts.pop("Address")
    headers = {name: " ".join(text.split()) for name, text in texts.items() if text.strip()}
    if date := _sent(file):
        headers["Date"] = date
    folders = sorted({path[0] for path in file.listdir() if path[0].startswith("__attach_version1.0_")})
    attached = [" ".join(re.split(r"[/\\]", name)[-1].split()) for folder in folders if (
        name := _property(file, folder, "3707") or _property(file, folder, "3704") or _property(file, folder, "3001")
        or "without a name")]
    page = _property(file, "", "1013")
    text = _property(file, "", "1000")
    if not page and not text.strip() and file.exists("__substg1.0_10090102"):
        raise DocumentError(source, "its text is only in compressed RTF; save it in Outlook as HTML or .eml")
    return _page(headers, _html_body(page) if page else paragraphs(text.replace("\r\n", "\n")), attached)


def _property(file: Any, folder: str, code: str) -> str:
    """Return a text property: in UTF-16, in 8 bits, or in bytes; empty if there is none."""
    for kind in ("001F", "001E", "0102"):
        path = [*([folder] if folder else []), f"__substg1.0_{code}{kind}"]
        if file.exists(path):
            data: bytes = file.openstream(path).read()
            if kind == "001F":
                return data.decode("utf-16-le", "replace").rstrip("\0")
            return decode(data.rstrip(b"\0"), code) if data.rstrip(b"\0") else ""
    return ""


def _sent(file: Any) -> str:
    if not file.exists("__properties_version1.0"):
        return ""
    data = file.openstream("__properties_version1.0").read()
    found = {}
    for at in range(32, len(data) - 15, 16):  # after the header, 16 bytes each: tag, flags, value
        property_tag, value = struct.unpack_from("<I4xQ", data, at)
        if property_tag & 0xFFFF == 0x0040 and value < 1 << 62:
            found[property_tag >> 16] = value
    ticks = next((found[code] for code in _DATES if found.get(code)), None)
    if ticks is None:
        return ""
    try:
        return (_EPOCH + timedelta(microseconds=ticks // 10)).isoformat()
    except OverflowError:
        return ""
