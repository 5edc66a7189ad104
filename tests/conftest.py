"""Options of the whole test suite."""

import os
import signal
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# a slow or busy machine fails nothing
settings.register_profile("tlir", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tlir")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="try every case where the default run takes the main ones, and of the others those that differ in kind",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "exhaustive: a case that only a run with --exhaustive takes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    left = [item for item in items if item.get_closest_marker("exhaustive") is not None]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.get_closest_marker("exhaustive") is None]


@pytest.fixture(scope="session")
def exhaustive(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--exhaustive"))


@pytest.fixture
def exit_code() -> Callable[[int], int]:
    """The exit code of a forked process; one that does not end within a minute is killed, which is not 0 either."""

    def wait(child: int) -> int:
        for _ in range(1200):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    return wait
