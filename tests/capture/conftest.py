"""Makes the oracle modules of this folder, and ``bench``, importable: pytest's importlib mode leaves the path alone."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
