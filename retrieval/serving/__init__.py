"""Models that a server runs: where it is, when it is asked again, and what its refusals say."""
