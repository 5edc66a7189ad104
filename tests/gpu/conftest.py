"""Tests on a real GPU, skipped by name where CuPy finds none.

With ``TLIR_TEST_GPU=stand-in`` they run on a stand-in for CuPy that executes the host build of the same source: the
tests themselves are tested so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("gpu", "passes", "conformance", "backends")]


@pytest.fixture(scope="session", autouse=True)
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A GPU, or none and the tests are skipped."""
    pytest.importorskip("llvmlite")
    from tlir.backends.cuda import device, nvrtc
    from tlir.errors import UnsupportedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        if os.environ.get("TLIR_TEST_GPU") == "stand-in":
            from cuda_standin import install, without_machine_code

            install(patch)
            patch.setattr(nvrtc, "code", without_machine_code)
        else:
            try:
                device.cupy()
            except UnsupportedError as error:
                pytest.skip(f"no CUDA device: {error.message}")
        yield
