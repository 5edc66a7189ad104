"""floatlib is the lowest layer: nothing else of tlir may be imported in it."""

import ast
from pathlib import Path

import tlir.floatlib

FOLDER = Path(tlir.floatlib.__file__).parent


def test_floatlib_imports_nothing_else_of_tlir() -> None:
    files = sorted(FOLDER.rglob("*.py"))
    assert len(files) > 10
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path.name}: relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                assert not name.startswith("tlir") or name.startswith("tlir.floatlib"), f"{path.name} imports {name}"
