"""The artifact: JSON to graph and back, versions, exact words, external files, and the JSON Schemas."""

from __future__ import annotations

from tlir.schema.reader import from_json, read
from tlir.schema.writer import dumps, lowest_version, to_json, upgrade, write

__all__ = ["dumps", "from_json", "lowest_version", "read", "to_json", "upgrade", "write"]
