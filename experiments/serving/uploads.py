"""Documents that clients add to what is served, where the server lets them."""
from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from ragbed.documents.errors import UserError
from ragbed.documents.sources import unknown_type
from ragbed.experiments.serving.gate import UPLOADS
from ragbed.experiments.serving.state import Serving, refused
from ragbed.retrieval.build import add_to_index

_LONGEST = 200  # bytes of a name: file systems take 255


def upload_routes(serving: Serving, folder: Path) -> APIRouter:
    """Return the route that adds a document to every index that is served, and keeps its file in a folder. Documents
    are added one after the other; the server answers from what was added a few seconds later."""
    router, turn = APIRouter(), asyncio.Lock()

    @router.post(UPLOADS, status_code=201)
    async def add(name: Annotated[str, Query(min_length=1, max_length=200)], request: Request) -> dict[str, Any]:
        """Add a document, whose bytes are the request's body, under a name that no other has."""
        if (name != Path(name).name or name.startswith(".") or not name.isprintable() or "\\" in name
                or len(name.encode()) > _LONGEST):
            raise refused(422, f"a document's name is that of a file, without folders, of {_LONGEST} bytes at most",
                          "bad_name")
        if (unknown := unknown_type(name)) is not None:
            raise refused(415, unknown, "unknown_type")
        places = {one.assistant.settings.index: one.assistant.index for one in serving.configurations.values()}
        async with turn:
            if (folder / name).exists() or any(name in index.manifest.sources for index in places.values()):
                raise refused(409, f"there is a document {name!r} already", "exists")
            body = await request.body()
            return await asyncio.shield(asyncio.to_thread(_add, folder / name, body, list(places)))

    return router


def _add(file: Path, body: bytes, indexes: list[Path]) -> dict[str, Any]:
    """Keep the file, and add it to the indexes; one that cannot be read is not kept."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as kept:
        kept.callback(file.unlink, missing_ok=True)
        file.write_bytes(body)
        try:
            reports = [add_to_index([file], index) for index in indexes]
        except UserError as error:
            raise refused(503, str(error), "not_added") from error
        skipped = next((one for report in reports for one in report.skipped), None)
        if skipped is not None:
            raise refused(422, f"{file.name}: {skipped}", "not_read")
        kept.pop_all()
    return {"name": file.name, "documents": reports[0].documents}
