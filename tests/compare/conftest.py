"""Makes the modules of this folder that hold no tests importable (importlib mode leaves the path alone)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
