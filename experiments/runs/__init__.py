"""The folder of a run: its files and lock, and reading finished runs."""
