"""Keys: who may ask a server, by header or, in a page's frames and pictures, by cookie."""
from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.serving.state import refused

COOKIE = "ragbed_session"
_SESSION = 12 * 3600  # seconds that a cookie is good for
_SHORTEST = 16  # characters of a key


class Keys:
    """The keys of a server, each with the name of its owner. Only their hashes are held, and compared in a time that
    tells nothing of them."""

    def __init__(self, lines: Iterable[str] = (), where: str = "keys") -> None:
        self._hashes: dict[str, bytes] = {}
        self._secret = secrets.token_bytes(32)
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                self._add(line.split(), f"{where}, line {number}")

    @classmethod
    def read(cls, path: Path | None, environment: str | None) -> Keys:
        """Return the keys of a file or, without one, of the value of RAGBED_KEYS: lines of a name and a key, or a name
        and `sha256:` with the hash of a key. Raises SettingsError where a line is something else."""
        if path is None:
            return cls(re.split(r"[\n,]", environment or ""), "RAGBED_KEYS")
        try:
            keys = cls(path.read_text(encoding="utf-8").splitlines(), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"--keys {path}: cannot be read: {getattr(error, 'strerror', error)}") from error
        if not keys:
            raise SettingsError(f"--keys {path}: holds no key; write a line of a name and a key for each owner")
        return keys

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def owner(self, key: str) -> str | None:
        """Return whose key it is; None where it is nobody's."""
        given, found = hashlib.sha256(key.encode("utf-8", "replace")).digest(), None
        for name, hash in self._hashes.items():  # every one of them, so that no place can be told by the time
            if hmac.compare_digest(given, hash):
                found = name
        return found

    def session(self, owner: str) -> str:
        """Return a cookie that stands for an owner's key until its end, or that of the process."""
        said = f"{owner} {int(time.time()) + _SESSION}".encode()
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (said, self._sign(said)))

    def of_session(self, cookie: str) -> str | None:
        """Return the owner that a cookie stands for; None where it is not ours, or has ended."""
        try:
            said, sign = (base64.urlsafe_b64decode(f"{part}{'=' * (-len(part) % 4)}") for part in cookie.split("."))
        except ValueError:
            return None
        if not hmac.compare_digest(self._sign(said), sign):
            return None
        owner, end = said.decode().split(" ")
        return owner if float(end) > time.time() else None

    def _sign(self, said: bytes) -> bytes:
        return hmac.digest(self._secret, said, "sha256")

    def _add(self, words: list[str], where: str) -> None:
        name, key = words if len(words) == 2 else ("", "")
        if not re.fullmatch(r"[A-Za-z0-9_.@-]{1,64}", name) or name in self._hashes:
            raise SettingsError(f"{where}: expected a name of its own and a key, with a space between")
        if key.startswith("sha256:"):
            if not re.fullmatch(r"sha256:[0-9a-f]{64}", key):
                raise SettingsError(f"{where}: expected 64 hexadecimal digits after sha256:")
            self._hashes[name] = bytes.fromhex(key[7:])
        elif len(key) < _SHORTEST:
            raise SettingsError(f"{where}: a key has {_SHORTEST} characters or more")
        else:
            self._hashes[name] = hashlib.sha256(key.encode()).digest()


class SessionRequest(BaseModel):
    """A key, for which the page is given a cookie."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(max_length=1_000)


def session_routes(keys: Keys) -> APIRouter:
    """Return the route by which the page's frames and pictures come by a key: they cannot send headers."""
    router = APIRouter()

    @router.post("/api/session")
    async def session(given: SessionRequest, request: Request) -> JSONResponse:
        owner = keys.owner(given.key) if keys else ""
        if owner is None:
            raise refused(401, "no such key", "invalid_api_key")
        answer = JSONResponse({"owner": owner})
        if keys:
            answer.set_cookie(COOKIE, keys.session(owner), _SESSION, httponly=True, samesite="strict",
                              secure=request.url.scheme == "https")
        return answer

    return router
