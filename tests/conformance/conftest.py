"""Makes the modules of this folder importable (importlib mode leaves the path alone), and names the devices."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

DEVICES = ("reference",)
"""The devices that every case runs on."""


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)
