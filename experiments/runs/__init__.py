"""The folder of a run: what it holds, who works on it, and reading it once it is finished."""
