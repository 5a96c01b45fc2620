"""Benchmarks loaded from rows that a test gives."""
import json


def loaded(kind, path, *rows, **settings):
    """The benchmark of a file that holds these rows: JSON Lines, or one list where the name ends in `.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(rows) if path.suffix == ".json" else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return kind(path=str(path), **settings).load()
