"""Builds an index: what is planned, read, cut, embedded and written, one document after the other."""
