"""What the commands share that write an artifact again: where to, in which version, with which external files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tlir.cli.paths import spare
from tlir.errors import UsageError

if TYPE_CHECKING:
    from tlir.ir.graph import Graph

EXTERNAL = 1 << 20
"""Tensors of more bytes stay in an external file where the artifact that is rewritten has one."""


def document_of(path: str) -> dict[str, Any]:
    """The document of an artifact that was read without error; empty where it cannot be read twice, as a pipe."""
    import json

    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8-sig") as stream:
        document: dict[str, Any] = json.load(stream)
    return document


def destination(path: str, output: str | None, in_place: bool) -> str | None:
    """Where to write; None is standard output. UsageError TL0901 unless at most one place is given, and for a file that
    would replace the artifact without --in-place."""
    if in_place and output is not None:
        raise UsageError("TL0901", "--in-place and --output exclude each other")
    if output == "":
        raise UsageError("TL0901", "the name of the output is empty")
    if output is not None and os.path.exists(output) and os.path.samefile(path, output):
        raise UsageError(
            "TL0901", "the output is the artifact itself", file=output, hint="say --in-place to replace it"
        )
    spare(output, path)
    return path if in_place else output


def write_graph(graph: Graph, path: str | None, version: int | None, external: bool) -> None:
    """Write a graph as a file, or to standard output with all tensors in it."""
    from tlir.cli.console import Output
    from tlir.schema import dumps, write

    if path is None:
        Output().raw(dumps(graph, version), end="")
    else:
        write(graph, path, version, EXTERNAL if external else None)


def write_text(path: str, text: str) -> None:
    """Write a text file, as a whole or not at all. UsageError TL0109 where it cannot be written."""
    from tlir.schema.files import replacing

    with replacing(path) as stream:
        stream.write(text.encode())
