"""Whether evidence suffices for an answer, and whether an answer's sentences stand in what they cite."""
