"""Output of the commands in a terminal."""
