"""Divide a set of questions or sources into shards of about equal size, which machines can process independently."""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest

SUFFIX = ".shards"  # the shards of NAME are in the folder NAME.shards next to it


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` of `of` parts, counted from 1. `id in shard` tells whether a question or source belongs to it. Only
    the hash of the id decides, so every machine divides a set the same way."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse text such as `3/16`. Raises SettingsError if the text is malformed or a number is out of range."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        shard = cls(*map(int, found.groups())) if found else cls(0, 0)
        if not 1 <= shard.number <= shard.of:
            raise SettingsError(f"--shard {text}: expected N/M, such as 1/16 for the first of 16 shards")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def __contains__(self, id: str) -> bool:
        return int(digest(id)[:12], 16) % self.of == self.number - 1

    def folder(self, whole: Path) -> Path:
        """Return the folder of this shard, such as `idx.shards/03-of-16` for the index `idx`."""
        return whole.parent / f"{whole.name}{SUFFIX}" / f"{self.number:0{len(str(self.of))}}-of-{self.of}"


def parts(whole: Path) -> list[Path]:
    """Return the folders of all shards of `whole` that were started."""
    return sorted(whole.with_name(f"{whole.name}{SUFFIX}").glob("*-of-*"))
