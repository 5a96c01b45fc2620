"""Trajectories: which tools an answer called, when it saw its gold, how it ended, and where two answers part."""
