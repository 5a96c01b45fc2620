"""Shards: equal parts of a whole, each carried out by itself, on any machine, and merged in the end."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest

_ENDING = ".shards"


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number`, from 1, of `of` parts. A hash of an id alone says which part it is in, so that every machine
    divides a whole alike."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard as `str` writes it, such as `3/16`; SettingsError where it is none."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        shard = cls(*map(int, found.groups())) if found else cls(0, 0)
        if not 1 <= shard.number <= shard.of:
            raise SettingsError(f"--shard {text}: expected NUMBER/OF, as in 3/16; the first of 16 is 1/16")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def __contains__(self, id: str) -> bool:
        return int(digest(id)[:12], 16) % self.of == self.number - 1

    def folder(self, whole: Path) -> Path:
        """Return the folder of this part, of that whose own folder is to be `whole`."""
        return whole.parent / f"{whole.name}{_ENDING}" / f"{self.number:0{len(str(self.of))}}-of-{self.of}"


def whole_of(part: Path) -> Path | None:
    """Return the folder of the whole that the folder of a part belongs to; None where it stands elsewhere."""
    place = part.parent if part.parent.name else part.absolute().parent
    return place.with_name(place.name.removesuffix(_ENDING)) if place.name.endswith(_ENDING) else None


def parts(whole: Path) -> list[Path]:
    """Return the folders of a whole's shards that were begun."""
    return sorted(whole.with_name(f"{whole.name}{_ENDING}").glob("*-of-*"))


def divisions(whole: Path) -> set[int]:
    """Return the numbers of shards into which a whole was divided so far, as their folders say."""
    return {int(of) for path in parts(whole) if (of := path.name.rpartition("-")[2]).isdecimal()}


def lacking(found: Mapping[Path, str | None]) -> str | None:
    """Say why folders, each with the shard that it says it is, are not all shards of one whole; None where they are."""
    seen: dict[Shard, Path] = {}
    for path, said in found.items():
        if said is None:
            return f"{path} is no shard: make one with --shard, as in --shard 3/16"
        shard = Shard.parse(said)
        first = next(iter(seen), shard)
        if shard.of != first.of:
            return f"{path} is shard {shard}, and {seen[first]} is {first}: they divide a whole differently"
        if shard in seen:
            return f"{seen[shard]} and {path} are both shard {shard}: give one of them"
        seen[shard] = path
    lost = [str(one) for number in range(shard.of) if (one := Shard(number + 1, shard.of)) not in seen]
    return f"{'shard' if len(lost) == 1 else 'shards'} {', '.join(lost)} missing" if lost else None
