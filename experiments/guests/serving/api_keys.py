"""Keys of a server: their owners, the cookies that replace them, and a limit on guesses."""
from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field

from ragbed.documents.errors import SettingsError
from ragbed.documents.paths import open_file
from ragbed.experiments.guests.access.key_claims import KEY_ENDS, Claims, read_claims, split_key_line
from ragbed.experiments.guests.serving.connections import network_of
from ragbed.experiments.guests.serving.state import RequestModel, http_error, retry_later
from ragbed.experiments.guests.serving.supervisor import GUESSES, RIGHT_KEYS, SharedNumbers

COOKIE = "ragbed_session"
_SESSION_SECONDS = 12 * 3600  # seconds a cookie is valid
_MIN_KEY_LENGTH, _MAX_FILE = 16, 16_000_000  # characters of a key; bytes of a file of keys
_FREE_GUESSES = 10  # unknown keys from an address before it has to wait
_MAX_WAIT = 300.0  # seconds that an address waits at most for its next guess
_FORGOTTEN = 600.0  # seconds after which the guesses of an address no longer count


class LoginLimit:
    """Limits how many unknown keys an address may send. After ten, each one doubles the wait for the next.

    A key that was right from an address stays accepted from it, so that nobody locks out others behind the same proxy.

    Attributes:
        on_failure: called with every unknown key.
        numbers: counts of all processes of the server.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.on_failure: Callable[[], object] = lambda: None
        self.numbers, self._clock = SharedNumbers(), clock

    def check(self, host: str, digest: bytes, known: bool) -> None:
        """Count a key with this hash. Raises HTTPException 429, also for a known key, if the address has to wait."""
        address, now = network_of(host), self._clock()
        right, count = f"{address} {digest.hex()}", 0
        with self.numbers.locked():
            number, last = self.numbers.read(GUESSES, address) or (0.0, now)
            wait = 0.0 if known and self.numbers.read(RIGHT_KEYS, right) else last + _wait_after(int(number)) - now
            if wait <= 0 and known:
                self.numbers.write(RIGHT_KEYS, right, 1, now)
            elif wait <= 0:
                count = int(number) + 1 if now - last < _FORGOTTEN else 1
                self.numbers.write(GUESSES, address, count, now)
        if wait > 0:
            raise retry_later("too many unknown keys from this address", "rate_limit_exceeded", wait)
        if count:
            self.on_failure()
        if count >= _FREE_GUESSES:
            logging.getLogger("ragbed").warning("%d unknown keys came from %s; the next is checked in %.0f s", count,
                                                address or "a client without an address", _wait_after(count))


def _wait_after(guesses: int) -> float:
    return min(2.0 ** min(guesses - _FREE_GUESSES, 10), _MAX_WAIT) if guesses >= _FREE_GUESSES else 0.0


class Keys:
    """Keys of a server, with their owners and the claims of these. Only hashes are kept, compared in constant time."""

    def __init__(self, lines: Iterable[str] = (), where: str = "keys") -> None:
        self._hashes: dict[str, bytes] = {}
        self.owners: dict[str, Claims] = {}
        self.logins = LoginLimit()
        self.secret = secrets.token_bytes(32)  # signs cookies; servers that share traffic share it
        for number, line in enumerate(lines, 1):
            if (found := line.strip()) and not found.startswith("#"):
                self._add(found, f"{where}, line {number}")

    @classmethod
    def read(cls, path: Path | None, environment: str | None) -> Keys:
        """Read keys from a file, or from the value of RAGBED_KEYS if there is no file.

        A line holds a name, a key or `sha256:` and the hash of one, and claims such as `groups=finance,hr`; or all as a
        JSON object, with `name` and `key`. Raises SettingsError for any other line."""
        if path is None:
            return cls(KEY_ENDS.split(environment or ""), "RAGBED_KEYS")
        try:
            with open_file(path, _MAX_FILE) as file:  # not a pipe, which may never end
                keys = cls(file.read().decode("utf-8").splitlines(), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"--keys {path}: cannot be read: {getattr(error, 'strerror', error)}") from error
        if not keys:
            raise SettingsError(f"--keys {path}: holds no key; write one line per owner, with a name and a key")
        return keys

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def claims(self, owner: str) -> Claims:
        """Return the claims of an owner; none if the owner is unknown."""
        return self.owners.get(owner, {})

    def owner(self, key: str) -> str | None:
        """Return the owner of a key; None if it is unknown."""
        given, found = hashlib.sha256(key.encode("utf-8", "replace")).digest(), None
        for name, hash in self._hashes.items():  # compare all keys, so that the time taken reveals nothing
            if hmac.compare_digest(given, hash):
                found = name
        return found

    def login(self, key: str, host: str) -> str | None:
        """Return the owner of a key that a client's address sent; None if it is unknown. Raises HTTPException 429 if
        too many unknown keys came from there."""
        owner = self.owner(key)
        self.logins.check(host, hashlib.sha256(key.encode("utf-8", "replace")).digest(), owner is not None)
        return owner

    def create_session(self, owner: str) -> str:
        """Return a cookie that replaces an owner's key until it expires or the key changes."""
        content = f"{owner} {int(time.time()) + _SESSION_SECONDS}".encode()
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=")
                        for part in (content, self._sign(owner, content)))

    def session_owner(self, cookie: str) -> str | None:
        """Return the owner of a cookie; None if this server did not sign it, or it has expired."""
        try:
            content, sign = (base64.urlsafe_b64decode(f"{part}{'=' * (-len(part) % 4)}") for part in cookie.split("."))
        except ValueError:
            return None
        owner, _, end = content.decode("latin-1").partition(" ")
        if owner not in self._hashes or not hmac.compare_digest(self._sign(owner, content), sign):
            return None
        return owner if float(end) > time.time() else None

    def replace(self, keys: Keys) -> None:
        """Use other keys from now on. Cookies of owners whose key is gone or has changed are no longer valid."""
        self._hashes, self.owners = keys._hashes, keys.owners

    def _sign(self, owner: str, content: bytes) -> bytes:
        return hmac.digest(self.secret, content + self._hashes[owner], "sha256")

    def _add(self, line: str, where: str) -> None:
        name, key, claims = split_key_line(line)
        if not re.fullmatch(r"[A-Za-z0-9_.@-]{1,64}", name) or name in self._hashes:
            raise SettingsError(f"{where}: expected a unique name and a key, separated by a space")
        self.owners[name] = read_claims(name, claims, where)
        if key.startswith("sha256:"):
            if not re.fullmatch(r"sha256:[0-9a-f]{64}", key):
                raise SettingsError(f"{where}: expected 64 hexadecimal digits after sha256:")
            self._hashes[name] = bytes.fromhex(key[7:])
        elif len(key) < _MIN_KEY_LENGTH:
            raise SettingsError(f"{where}: a key needs at least {_MIN_KEY_LENGTH} characters")
        else:
            self._hashes[name] = hashlib.sha256(key.encode()).digest()


class SessionRequest(RequestModel):
    """A key to exchange for a cookie."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(max_length=1_000)


def session_routes(keys: Keys) -> APIRouter:
    """Return the routes that set and delete a cookie. Frames and images of the page need it, as they send no header."""
    router = APIRouter()

    @router.post("/api/session")
    async def session(given: SessionRequest, request: Request) -> JSONResponse:
        owner = keys.login(given.key, request.client.host if request.client else "") if keys else ""
        if owner is None:
            raise http_error(401, "unknown key", "invalid_api_key")
        answer = JSONResponse({"owner": owner})
        if keys:
            answer.set_cookie(COOKIE, keys.create_session(owner), _SESSION_SECONDS, httponly=True, samesite="strict",
                              path=request.scope.get("root_path") or "/", secure=request.url.scheme == "https")
        return answer

    @router.delete("/api/session")
    async def leave(request: Request) -> JSONResponse:
        answer = JSONResponse({"owner": None})
        answer.delete_cookie(COOKIE, request.scope.get("root_path") or "/", httponly=True, samesite="strict")
        return answer

    return router
