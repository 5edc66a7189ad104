"""The artifact: JSON to graph and back, versions, exact words, external files, and the JSON Schemas."""

from __future__ import annotations

from tlir.schema.reader import from_json, read

__all__ = ["from_json", "read"]
