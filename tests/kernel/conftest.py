"""Makes the modules of this folder, and the random graphs of the passes' tests, importable."""

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "passes", Path(__file__).parents[1] / "conformance"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
