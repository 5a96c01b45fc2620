"""Cassettes of runs: exporting one, showing what it holds, and replaying it without a model, an index or a network."""
