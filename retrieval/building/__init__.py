"""How an index is built: what is planned, read, cut, embedded and written, one document after the other."""
