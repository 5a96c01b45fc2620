"""Answer files of other tools. Each module reads and writes one tool's format."""
