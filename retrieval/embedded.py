"""The vectors of chunks, embedded as those of an index are: in windows, below the header of their document."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from documents.types import Chunk
from retrieval.embedder import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from retrieval.embedder import Matrix


def windows_of(chunks: Sequence[Chunk], known: Callable[[Chunk], Matrix | None], header: Callable[[str], str],
               embedder: Callable[[], Embedder]) -> tuple[Matrix, NDArray[np.intp]]:
    """The unit vectors of the chunks' windows, float32 of shape (windows, dimension), and where each chunk's begin.

    Args:
        known: the vectors of a chunk where they need not be embedded, else None.
        header: of a document.
        embedder: of the others; asked for where there are such.
    """
    import numpy as np

    found = [known(chunk) for chunk in chunks]
    missing = [chunk for chunk, vectors in zip(chunks, found, strict=True) if vectors is None]
    made = iter(_embedded(missing, header, embedder()) if missing else ())
    parts = [next(made) if vectors is None else vectors for vectors in found]
    starts: NDArray[np.intp] = np.array([0, *accumulate(map(len, parts))][:-1], np.intp)
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)), starts


def _embedded(chunks: Sequence[Chunk], header: Callable[[str], str], embedder: Embedder) -> list[Matrix]:
    texts = [[above + chunk.content[start:end] for start, end in embedder.windows([chunk.content], above)[0]]
             for chunk in chunks for above in [header(chunk.document)]]
    vectors = embedder.embed_passages([text for windows in texts for text in windows])
    ends = list(accumulate(map(len, texts)))
    return [vectors[first:end] for first, end in zip([0, *ends], ends, strict=False)]
