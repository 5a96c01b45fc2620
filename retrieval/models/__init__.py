"""Models of sentence-transformers: where they are found, how they are loaded, and what they can read at once."""
