"""Run the command line as `python -m ragbed`."""
from ragbed.experiments.cli import main

if __name__ == "__main__":
    main()
