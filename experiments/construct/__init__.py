"""Build benchmarks from documents: the five papers' ways, and one whose truth is computed."""
