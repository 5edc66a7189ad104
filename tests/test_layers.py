"""Imports point downward only: read from the source, so that an import inside a function counts too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

LAYERS = (
    ("tlir.floatlib",),
    ("tlir.errors",),
    ("tlir.ir",),
    ("tlir.schema",),
    ("tlir.kernel",),
    ("tlir.passes",),
    ("tlir.render",),
    ("tlir.backends",),
    ("tlir.compare",),
    ("tlir.api", "tlir.arguments", "tlir.iteration"),
    ("tlir",),
    ("tlir.cli",),
)
"""Bottom to top; a module may import from its own layer and those below."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module: str) -> int:
    """The position of the layer that holds the module."""
    best = max((name for names in LAYERS for name in names if f"{module}.".startswith(f"{name}.")), key=len, default="")
    if best == "tlir" and module != "tlir":
        raise AssertionError(f"{module} belongs to no layer: add it to LAYERS and to docs/architecture.md")
    return next(k for k, names in enumerate(LAYERS) if best in names)


def imports(path: Path) -> set[str]:
    """The modules of tlir that a file imports, at its top, inside functions, or for type checking."""
    own = module_name(path).split(".")
    return imports_of(path.read_text(encoding="utf-8"), own if path.name == "__init__.py" else own[:-1])


def imports_of(text: str, package: list[str]) -> set[str]:
    """The modules of tlir that source text in a package imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{module}.{alias.name}".replace(".", "/")
                is_module = (ROOT / f"{inner}.py").exists() or (ROOT / inner).is_dir()
                found.add(f"{module}.{alias.name}" if is_module else module)
    return {name for name in found if name.split(".")[0] == "tlir"}


SOURCES = sorted((ROOT / "tlir").rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_point_downward(path: Path) -> None:
    own = module_name(path)
    for name in imports(path):
        assert layer(name) <= layer(own), f"{own} imports {name}, which is above it"


@pytest.mark.parametrize("path", sorted((ROOT / "capture").glob("*.py")), ids=lambda path: path.stem)
def test_capture_scripts_stand_alone(path: Path) -> None:
    assert not imports(path)


def test_floatlib_imports_nothing_else_of_tlir() -> None:
    files = [path for path in SOURCES if module_name(path).startswith("tlir.floatlib")]
    assert files
    for path in files:
        assert all(name.startswith("tlir.floatlib") for name in imports(path)), path


@pytest.mark.parametrize(
    "text",
    [
        "import tlir.cli",
        "from tlir import cli",
        "from .. import cli",
        "from ..cli import group",
        "def f():\n    from tlir.cli.group import report",
        "if TYPE_CHECKING:\n    from tlir.cli.group import report",
    ],
)
def test_upward_imports_of_every_form_are_seen(text: str) -> None:
    assert any(layer(name) > layer("tlir.floatlib.format") for name in imports_of(text, ["tlir", "floatlib"]))
