"""Files and folders given on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tlir.errors import UsageError


def artifacts(paths: Sequence[str]) -> list[str]:
    """The artifacts that the paths name: files as they are, and of a folder every ``*.json`` in it and below, sorted.

    Hidden files and folders are left out. UsageError TL0902 for a path that does not exist and for a folder without
    artifacts, so that nothing passes because nothing was looked at; TL0901 where there is no path.
    """
    found: dict[str, None] = {}
    for path in paths:
        if os.path.isdir(path):
            inside = list(_in_folder(path))
            if not inside:
                raise UsageError("TL0902", "the folder holds no .json file", file=path)
            found.update(dict.fromkeys(inside))
        else:
            found[existing(path)] = None
    return list(found)


def existing(path: str) -> str:
    """The path of a file that is there. UsageError TL0902 otherwise."""
    if os.path.isdir(path):
        raise UsageError("TL0902", "is a folder; this command takes one file", file=path)
    if os.path.exists(path):
        return path
    from difflib import get_close_matches

    folder = os.path.dirname(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        names = []
    close = get_close_matches(os.path.basename(path), names, 1)
    hint = f"did you mean {os.path.join(folder, close[0])}?" if close else None
    raise UsageError("TL0902", "there is no such file or folder", file=path, hint=hint)


def _in_folder(folder: str) -> Iterable[str]:
    for path in sorted(Path(folder).rglob("*.json")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield str(path)
