"""Read keys and other secrets from environment variables, hide them in texts, and fill them into headers."""
from __future__ import annotations

import os
import re

from ragbed.documents.errors import ModelError

GENERAL_KEY = "RAGBED_API_KEY"  # the key for addresses whose settings name no other
_variables = dict.fromkeys(("OPENAI_API_KEY", GENERAL_KEY, "MILVUS_TOKEN"))  # that hold secrets; grows with `read_key`
_MIN_KEY = 8  # characters; a shorter key is a placeholder such as `x`, which also occurs in ordinary words


def read_key(variable: str, *, required: bool) -> str:
    """Return the secret in an environment variable, and hide it from now on in texts of servers and libraries. Raises
    ModelError if it is `required` and missing, or cannot be sent in a header."""
    _variables[variable] = None
    key = os.environ.get(variable, "").strip()
    if required and not key:
        raise ModelError(f"{variable} is not set; set it to the server's key")
    # A header cannot contain these, and the HTTP client's own error would show the key.
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelError(f"{variable} contains spaces or characters that cannot be sent; set it to nothing but the key")
    return key


def known_keys(key: str = "") -> list[str]:
    """Return the keys to hide: the given key and those in environment variables, longest first, except placeholders."""
    keys = {key, *(os.environ.get(variable, "").strip() for variable in _variables)}
    return sorted((one for one in keys if len(one) >= _MIN_KEY), key=len, reverse=True)


def redact_keys(text: str, key: str = "") -> str:
    """Replace the given key, and those in environment variables, with `[key]`."""
    for one in known_keys(key):
        text = text.replace(one, "[key]")
    return text


HeaderValue = str | dict[str, str]
"""Value of a header in settings: a text, in which `${NAME}` is an environment variable, or `{env: NAME}`."""
_FIELD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def check_header(name: str, value: HeaderValue, secret: bool) -> None:
    """Raise ValueError if a header cannot be sent, or if it is `secret` and its value is written out."""
    template = header_template(value)
    if not _FIELD.fullmatch(name) or not (template.isascii() and template.isprintable()):
        raise ValueError(f"{name!r:.60}: not a header that can be sent; use printable ASCII characters")
    if isinstance(value, dict) and not (value.keys() == {"env"} and _VARIABLE.fullmatch(template)):
        raise ValueError(f"{name}: expected a text, or {{env: NAME}} with an environment variable")
    written = _VARIABLE.sub("", template)
    if any(key in template for key in known_keys()) or (secret and written == template):
        raise ValueError(f"{name}: the value would be stored with the settings; put it into an environment variable, "
                         f"and write {name}: {{env: VARIABLE}} or ${{VARIABLE}}")


def header_template(value: HeaderValue) -> str:
    """Return the text of a header's value, with `${NAME}` for an environment variable."""
    return value if isinstance(value, str) else f"${{{value.get('env')}}}"


def fill_header(value: HeaderValue, *, send: bool = True) -> str:
    """Return a header's value with its environment variables. Without `send`, they may be missing."""
    return _VARIABLE.sub(lambda found: read_key(found[1], required=send), header_template(value))
