"""Lets tests of this folder import from each other."""
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
