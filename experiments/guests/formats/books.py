"""Parse e-books (EPUB), chapter by chapter in the order of their spine."""
from __future__ import annotations

import posixpath
import re
from typing import Any
from urllib.parse import unquote

from ragbed.documents.decoding import decode
from ragbed.documents.errors import DocumentError
from ragbed.documents.parsers.html import parse_html
from ragbed.documents.types import FORMATS, Document, FieldValue, new_document
from ragbed.experiments.guests.formats.pages import local_name, open_zip, parse_xml_tree, read_part, text_of

_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")  # obfuscated fonts are no protection
_FIELDS = {"creator": "author", "date": "date", "language": "language", "publisher": "publisher",
           "subject": "subject"}
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")


def parse_epub(data: bytes, source: str) -> Document:
    """Read a book: title, authors and the text of its chapters. Raises DocumentError if it is damaged or protected."""
    with open_zip(data, source, "an EPUB file") as archive:
        _check_protection(archive, source)
        container = parse_xml_tree(read_part(archive, "META-INF/container.xml", source), source)
        root = next((one.get("full-path") for one in container.iter() if local_name(one) == "rootfile"), None) or ""
        package = parse_xml_tree(read_part(archive, root, source), source)
        chapters = [parse_html(read_part(archive, name, source), source)
                    for name in _spine(package, posixpath.dirname(root), source)]
    title, fields = _metadata(package)
    title = title or next(filter(None, (chapter.title for chapter in chapters)), "")
    html, plain = ("".join(getattr(chapter, format) for chapter in chapters) for format in FORMATS)
    return new_document(title, html, plain, hidden=sum(chapter.hidden for chapter in chapters), fields=fields)


def _check_protection(archive: Any, source: str) -> None:
    names = set(archive.namelist())
    if "META-INF/encryption.xml" in names:
        text = decode(archive.read("META-INF/encryption.xml"), source)
        methods = re.findall(r"EncryptionMethod[^>]*Algorithm=[\"']([^\"']*)", text)
        if not methods or any(method not in _FONTS for method in methods):
            raise DocumentError(source, "protected by DRM: its text is encrypted")
    elif {"META-INF/rights.xml", "rights.xml"} & names:
        raise DocumentError(source, "protected by DRM: its text is encrypted")


def _spine(package: Any, folder: str, source: str) -> list[str]:
    """Return the names of the chapters in the archive, in reading order."""
    items = {one.get("id"): one for one in package.iter() if local_name(one) == "item"}
    names: list[str] = []
    for one in package.iter():
        item = items.get(one.get("idref")) if local_name(one) == "itemref" else None
        if item is not None and item.get("media-type") in _PAGES:
            name = posixpath.normpath(posixpath.join(folder, unquote((item.get("href") or "").partition("#")[0])))
            if name not in names:
                names.append(name)
    if not names:
        raise DocumentError(source, "a damaged EPUB file: its spine names no chapter")
    return names


def _metadata(package: Any) -> tuple[str, dict[str, FieldValue]]:
    found: dict[str, list[str]] = {}
    for one in next((list(one) for one in package if local_name(one) == "metadata"), []):
        if (name := local_name(one)) in {"title", *_FIELDS} and (text := text_of(one)):
            found.setdefault(name, []).append(text)
    fields: dict[str, FieldValue] = {_FIELDS[name]: ", ".join(texts) for name, texts in found.items()
                                     if name in _FIELDS}
    return next(iter(found.get("title", [])), ""), fields
