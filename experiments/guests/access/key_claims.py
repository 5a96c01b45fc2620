"""Claims of keys, such as groups: how a file of keys states them, and which values are well formed."""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from ragbed.documents.errors import SettingsError
from ragbed.documents.json import loads
from ragbed.documents.types import FieldValue

Claims = Mapping[str, frozenset[str]]  # claims of a key, by name; each has one or more values

CLAIM = r"[A-Za-z_][\w-]*"  # name of a claim
# Claims have commas, too: one between keys comes before a name and a key.
KEY_ENDS = re.compile(r"\n|,(?=\s*[\w.@-]+\s+[^\s=,]+=*(?:[\s,]|\Z))")
_MAX_VALUE = 200  # characters of a value


def split_key_line(line: str) -> tuple[str, str, Mapping[str, Sequence[str]]]:
    """Return the name, the key and the claims on a line; empty texts if it is malformed."""
    if line.startswith("{"):
        try:
            given = loads(line)
        except ValueError:
            return "", "", {}
        name, key = (str(given.pop(one, "")) for one in ("name", "key"))
        return name, key, {claim: list(map(str, value)) if isinstance(value, list) else [str(value)]
                           for claim, value in given.items()}
    name, key, *rest = line.split() if " " in line or "\t" in line else ("", "")
    claims: dict[str, list[str]] = {}
    for claim, _, value in (word.partition("=") for word in rest):
        claims.setdefault(claim, []).append(value)
    return name, key, claims


def read_claims(name: str, claims: Mapping[str, Iterable[str]], where: str) -> Claims:
    """Return the claims of a key, with its name as the claim `name`. Raises SettingsError if one is malformed."""
    read = {"name": frozenset((name,))}
    for claim, given in claims.items():
        values = [split_values(value) for value in given]
        if claim in read or not re.fullmatch(CLAIM, claim, re.ASCII) or not values or None in values:
            raise SettingsError(f"{where}: expected claims such as groups=finance,hr, each named once and other than "
                                f"`name`; found {claim!r:.60}")
        read[claim] = frozenset(one for part in values for one in part or ())
    return read


def split_values(value: FieldValue) -> frozenset[str] | None:
    """Return the values of a field or claim: its text, split at commas. None if it is malformed, such as empty between
    two commas, or with characters that nobody sees."""
    if value is None:
        return frozenset()
    if isinstance(value, bool | float):
        return None
    parts = [unicodedata.normalize("NFC", part.strip(" ")) for part in str(value).split(",")]
    well_formed = all(0 < len(part) <= _MAX_VALUE and part.isprintable() and not {'"', "*", "?"} & set(part)
                      for part in parts)
    return frozenset(parts) if well_formed else None
