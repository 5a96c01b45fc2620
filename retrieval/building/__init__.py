"""Building an index: planning, parsing, chunking, embedding and writing, one document at a time."""
