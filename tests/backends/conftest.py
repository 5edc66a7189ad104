"""Random graphs are those of the tests of lowering, single operations those of conformance; this folder has modules of
its own."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("passes", "conformance", "backends")]
