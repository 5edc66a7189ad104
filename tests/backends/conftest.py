"""Random graphs are those of the tests of lowering; the folder's own helpers are modules too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "passes"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
