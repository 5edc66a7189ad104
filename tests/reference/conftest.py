"""Makes ``conformance`` and ``exact`` of ``tests/conformance`` importable (importlib mode leaves the path alone)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "conformance"))
