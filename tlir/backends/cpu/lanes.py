"""LLVM vectors and their machine, which ``tlir.floatlib`` has for its own loops too."""

from __future__ import annotations

from tlir.floatlib.soft.lanes import (
    BYTE,
    DOUBLE,
    FLOAT,
    I1,
    I32,
    I64,
    LaneMachine,
    broadcast,
    element_bytes,
    gather,
    intrinsic,
    mangled,
    masked_load,
    masked_store,
    places,
    prefetch,
    scatter,
    splat,
    vector,
)

__all__ = [
    "BYTE",
    "DOUBLE",
    "FLOAT",
    "I1",
    "I32",
    "I64",
    "LaneMachine",
    "broadcast",
    "element_bytes",
    "gather",
    "intrinsic",
    "mangled",
    "masked_load",
    "masked_store",
    "places",
    "prefetch",
    "scatter",
    "splat",
    "vector",
]
