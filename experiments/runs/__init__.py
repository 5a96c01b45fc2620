"""The folder of a run: its files, its lock, and reading it once it is finished."""
