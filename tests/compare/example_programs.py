"""The programs of `examples/`, each in every format: their floating-point arguments and parameters are of that format,
so that the program computes in it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DTYPES = ("float16", "bfloat16", "float32", "float64")
REFUSED = ("host_callback", "selection_by_value")
"""Programs that show what cannot be captured."""


def module(path: Path) -> ModuleType:
    """The module in a file; the same one when asked again."""
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]


def names(frontend: str) -> list[str]:
    """The examples that can be captured, in the order of the file."""
    examples = module(ROOT / "examples" / f"{frontend}_examples.py").EXAMPLES
    found = [entry.name for entry in examples] if frontend == "jax" else list(examples)
    return [name for name in found if name not in REFUSED]


def program(frontend: str, name: str, dtype: str, width: int = 4, batch: int = 2) -> tuple[Callable[..., Any], Any]:
    """An example's function and its arguments in a format."""
    examples = module(ROOT / "examples" / f"{frontend}_examples.py").EXAMPLES
    if frontend == "jax":
        (entry,) = (entry for entry in examples if entry.name == name)
        function, arguments = entry.build(width, batch)
        return function, _in_jax(arguments, dtype)
    function, arguments = examples[name](width, batch)
    return _in_torch(function, arguments, dtype)


def mode(frontend: str, dtype: str) -> AbstractContextManager[Any]:
    """64-bit numbers are there in JAX where the format needs them."""
    if frontend != "jax":
        return nullcontext()
    import jax

    manager: AbstractContextManager[Any] = jax.enable_x64(dtype == "float64")
    return manager


def exported(frontend: str, function: Callable[..., Any], arguments: Any, **options: Any) -> dict[str, Any]:
    """The document that the frontend's capture script makes; its classes must be those of the example's module."""
    capture = module(ROOT / "capture" / f"{frontend}_capture.py")
    document: dict[str, Any] = capture.export(function, *arguments, **options)
    return document


def _in_jax(arguments: Any, dtype: str) -> Any:
    import jax
    import jax.numpy as jnp

    wide = {"float16": "complex64", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}[dtype]

    def cast(leaf: Any) -> Any:
        leaf = np.asarray(leaf)
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.asarray(leaf.astype(jnp.dtype(dtype)))
        return jnp.asarray(leaf.astype(wide)) if leaf.dtype.kind == "c" else leaf

    return jax.tree.map(cast, arguments)


def _in_torch(function: Any, arguments: Any, dtype: str) -> tuple[Any, Any]:
    import torch

    kind = getattr(torch, dtype)
    wide = torch.complex128 if dtype == "float64" else torch.complex64

    def cast(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.to(kind) if leaf.is_floating_point() else leaf.to(wide) if leaf.is_complex() else leaf

    if isinstance(function, torch.nn.Module):
        function = function.to(kind)
    return function, torch.utils._pytree.tree_map(cast, arguments)
