"""Compare RAG strategies by answer quality, citations and refusals.

    from ragbed import run

    with run("compare.yaml") as finished:
        print(finished.frame().groupby("cell_name")["score.em"].mean())

`__init__.pyi` lists the public names. Each is imported on first use, so that `import ragbed` is quick.
"""
from ragbed.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
