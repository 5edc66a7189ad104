"""Makes the modules of this folder and the random graphs importable (importlib mode leaves the path alone), and names
the devices."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "passes")]

DEVICES = ("reference",)
"""The devices that every case runs on one by one; ``test_devices`` has the compiled ones."""


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)
