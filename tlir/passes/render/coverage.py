"""What becomes of each frontend's operations: as rows of text, and as the page ``docs/coverage.md``.

A listing is the document that ``--list-operations --json`` of a capture script prints: ``frontend``,
``frontend_version`` and ``operations``, each with ``name``, ``status`` and what belongs to that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

Listing = Mapping[str, Any]

TITLES = {"jax": "JAX", "torch": "PyTorch"}
_NOUNS = {"jax": "primitives", "torch": "operators"}

STATUSES = {
    "written": ("", "written as operations of tlir"),
    "definition": ("read through its definition", "read through their definitions"),
    "decomposed": ("decomposed by the frontend", "decomposed by the frontend"),
    "inlined": ("inlined", "inlined"),
    "operand": ("its operand", "their operand"),
    "nothing": ("nothing to compute", "nothing to compute"),
    "refused": ("", "refused"),
}
"""Every status, with what it says of one operation, and of several."""


def becomes(entry: Mapping[str, Any], code: str = "") -> str:
    """What becomes of one operation of a frontend, in words; ``code`` goes around the names of operations."""
    if entry["status"] == "written":
        text = ", ".join(f"{code}{name}{code}" for name in entry["operations"])
        text += ", or its definition" if entry.get("expands") else ""
        return text + (f"; elsewhere refused: {entry['reason']}" if "reason" in entry else "")
    if entry["status"] == "refused":
        return f"refused: {entry['reason']}"
    return STATUSES[entry["status"]][0]


def summary(listing: Listing) -> str:
    """``287 primitives of JAX 0.10.2: 145 written as operations of tlir, …``; a build's own suffix is left out."""
    entries = listing["operations"]
    counts = Counter(entry["status"] for entry in entries)
    parts = [f"{counts[status]} {text}" for status, (_, text) in STATUSES.items() if counts[status]]
    frontend, version = listing["frontend"], listing["frontend_version"].partition("+")[0]
    head = f"{len(entries)} {_NOUNS[frontend]} of {TITLES[frontend]} {version}"
    return f"{head}: {', '.join(parts)}"


def markdown(listings: Sequence[Listing]) -> str:
    """The page ``docs/coverage.md``."""
    return "\n".join(_page(listings)) + "\n"


def _page(listings: Sequence[Listing]) -> Iterator[str]:
    yield "# Coverage"
    yield ""
    yield "What the capture scripts make of every operation of the frontends, generated from their rules by"
    yield "`make docs`. `tlir ops --frontend jax` and `tlir ops --frontend torch` print the same for the installed"
    yield "versions."
    yield ""
    yield "A rule writes some of its operations only for certain dtypes or settings; besides them it may bring operands"
    yield "into the shape and dtype that an operation takes (`convert`, `broadcast_in_dim`, `constant`). What is *read"
    yield "through its definition* is traced again as the function by which the frontend itself defines it. What is"
    yield "*refused* ends the capture with the name, the reason and the line of the program. [ops.md](ops.md) says what"
    yield "each operation returns."
    for listing in listings:
        yield ""
        yield f"## {TITLES[listing['frontend']]}"
        yield ""
        yield summary(listing) + "."
        yield ""
        yield f"| {_NOUNS[listing['frontend']][:-1]} | becomes |"
        yield "|---|---|"
        for names, text in _rows(listing):
            yield f"| {names} | {text} |"


def _rows(listing: Listing) -> Iterator[tuple[str, str]]:
    """Names with what becomes of them; overloads of one operator that become the same stand in one row."""
    cells = [(entry["name"], becomes(entry, "`")) for entry in listing["operations"]]
    for (base, text), group in groupby(cells, lambda cell: (cell[0].rpartition(".")[0], cell[1])):
        names = [name for name, _ in group]
        if not base:
            yield from ((f"`{name}`", text) for name in names)
            continue
        overloads = [name.removeprefix(f"{base}.") for name in names]
        yield f"`{base}`: " + ", ".join(f"`{overload}`" for overload in overloads), text
