"""tlir keeps a tensor computation exactly as it was written and runs it anywhere with the same bits.

``load`` reads an artifact as a ``Graph`` with ``check()``, ``run()`` and ``compare()``; ``compare`` does the last in
one call, and ``verify`` captures a JAX or PyTorch function and checks it. Everything is imported when it is first used.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tlir.api import Graph, VerifyReport, compare, load, verify
    from tlir.errors import ArtifactError, TlirError, UnsupportedError, UsageError

    __version__: str

__all__ = [
    "ArtifactError",
    "Graph",
    "TlirError",
    "UnsupportedError",
    "UsageError",
    "VerifyReport",
    "__version__",
    "compare",
    "load",
    "verify",
]

_ERRORS = ("ArtifactError", "TlirError", "UnsupportedError", "UsageError")


class _Package(ModuleType):
    """The package ``tlir`` itself. Importing the subpackage ``tlir.compare`` would bind that name here, where it is the
    function; ``from tlir.compare import ...`` finds the subpackage by its full name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "compare" and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in _ERRORS:
        from tlir import errors

        value = getattr(errors, name)
    elif name in __all__:
        from tlir import api

        value = getattr(api, name)
    else:
        raise AttributeError(f"module 'tlir' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tlir")
    except PackageNotFoundError:
        return "0+source"  # used from a source tree without being installed
