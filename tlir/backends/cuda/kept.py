"""Machine code of translation units, kept on disk between processes by content, architecture and NVRTC's version."""

from __future__ import annotations

import hashlib

from tlir.backends.cuda import nvrtc
from tlir.floatlib.soft import objects


def machine_code(text: str, capability: int) -> bytes:
    """What a GPU of a compute capability loads for a translation unit, from the folder of ``objects`` or compiled now.
    Errors are those of ``nvrtc.code``."""
    version = ".".join(map(str, nvrtc.version()))
    parts = ("cuda", version, str(capability), *nvrtc.FLAGS, text)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    found = objects.kept(key)
    if found is None:
        found = nvrtc.code(text, capability)
        objects.keep(key, found)
    return found
