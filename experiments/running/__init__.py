"""Carrying out a run: what it starts from, its questions in their cells, its summary."""
