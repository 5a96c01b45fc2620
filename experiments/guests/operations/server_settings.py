"""Options of `ragbed serve` that do not describe a configuration, in one object."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from ragbed.agents.database import is_postgres
from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.operations.edge import EdgeSettings
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.connections import allowed_connections
from ragbed.experiments.guests.serving.middleware import GateSettings
from ragbed.experiments.guests.serving.size_limits import SizeLimits
from ragbed.experiments.guests.serving.state import Citations, PageSettings


@dataclass(frozen=True)
class ServerSettings:
    """Where a server listens, what it stores, whom it lets in, and how it answers.

    Attributes:
        traffic: folder for questions, answers and feedback.
        threads: file or PostgreSQL database for conversations; a database stores the traffic too.
        keep_days: days after which answers are deleted.
        names: accepted Host names besides those of `host` and `url`.
        keys: file of API keys; without it, the variable RAGBED_KEYS.
        allow: rules on who may read which documents, in addition to those of the target.
        mcp: serve the MCP tools over stdin and stdout, with the rights of the key of `owner`.
        limits: its keys, names and origins are ignored, and `connections` replaces its own.
        answering: fields of `ServeSettings` that the command line sets.
        spend: US dollars per key and time, such as `5/day`.

    `ServerState` documents `url`, `citations`, `explore` and `page`. Raises SettingsError if `citations` is unknown.
    """

    traffic: Path = Path("traffic")
    threads: str | None = None
    keep_days: float | None = None
    host: str = "127.0.0.1"
    port: int = 8700
    url: str = ""
    names: tuple[str, ...] = ()
    keys: Path | None = None
    allow: tuple[str, ...] = ()
    mcp: bool = False
    owner: str = ""
    workers: int = 1
    connections: int | None = None
    limits: GateSettings = field(default_factory=GateSettings)
    edge: EdgeSettings = field(default_factory=EdgeSettings)
    sizes: SizeLimits = field(default_factory=SizeLimits)
    page: PageSettings = field(default_factory=PageSettings)
    answering: Mapping[str, Any] = field(default_factory=dict)
    citations: Citations = "annotations"
    explore: float = 0.0
    spend: str = ""
    log_texts: bool = False

    def __post_init__(self) -> None:
        if self.citations not in get_args(Citations):
            raise SettingsError(f"--citations {self.citations!r:.40}: expected {', '.join(get_args(Citations))}")

    @property
    def store(self) -> Path | str:
        """Return where the traffic is stored: the folder, or the URL of a PostgreSQL database."""
        return self.threads if self.threads and is_postgres(self.threads) else self.traffic

    def read_keys(self) -> Keys:
        """Return the API keys of the file or the environment. Raises SettingsError if they are malformed."""
        return Keys.read(self.keys, os.environ.get("RAGBED_KEYS"))

    def gate(self) -> GateSettings:
        """Return the limits with keys, names and origins. Raises SettingsError if the keys are malformed, or the system
        allows fewer connections."""
        names = frozenset(name.lower() for name in (self.host, urlsplit(self.url).hostname, *self.names) if name)
        return replace(self.limits, keys=self.read_keys(), names=names, origins=self.edge.origins,
                       connections=allowed_connections(self.connections, self.workers))
