"""Files and folders given on the command line."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from tlir.errors import UsageError


def artifacts(paths: Sequence[str]) -> list[str]:
    """The artifacts that the paths name: files as they are, and of a folder every ``*.json`` in it and below, sorted.

    Hidden files and folders are left out. UsageError TL0902 for a path that does not exist, for a folder without
    artifacts, and for one that cannot be read, so that nothing passes because nothing was looked at.
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
    if not path:
        raise UsageError("TL0901", "the name of a file is empty")
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            return path
    except (FileNotFoundError, NotADirectoryError):
        raise _absent(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError("TL0902", f"cannot be reached: {reason}", file=path) from None
    raise UsageError("TL0902", "is a folder; this command takes one file", file=path)


def spare(output: str | None, *artifacts: str) -> None:
    """UsageError TL0901 where a file that is about to be written would replace an artifact that the command reads, or
    the tensor data of one."""
    if output is None or not os.path.isfile(output):
        return
    for artifact in artifacts:
        if os.path.exists(artifact) and os.path.samefile(artifact, output):
            hint = "give the output another name"
            raise UsageError("TL0901", "the output is the artifact itself", file=output, hint=hint)
        folder = os.path.dirname(artifact)
        for name in _external(artifact) if output.endswith(".safetensors") else ():
            data = os.path.join(folder, name)
            if os.path.exists(data) and os.path.samefile(data, output):
                raise UsageError("TL0901", f"the output is the tensor data of {artifact}", file=output)


def _external(artifact: str) -> list[str]:
    """The names of an artifact's external files; none of what is not an artifact, or cannot be read twice."""
    if not os.path.isfile(artifact):
        return []
    try:
        with open(artifact, encoding="utf-8-sig") as stream:
            return list(json.load(stream)["external"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _absent(path: str) -> UsageError:
    if os.path.islink(path):
        return UsageError("TL0902", f"is a symbolic link to {os.readlink(path)}, which is not there", file=path)
    from difflib import get_close_matches

    folder = os.path.dirname(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        names = []
    close = get_close_matches(os.path.basename(path), names, 1)
    hint = f"did you mean {os.path.join(folder, close[0])}?" if close else None
    return UsageError("TL0902", "there is no such file or folder", file=path, hint=hint)


def _in_folder(folder: str) -> Iterable[str]:
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = (name for name in folders if not name.startswith("."))
        paths = (Path(place, name) for name in names if name.endswith(".json") and not name.startswith("."))
        # a link that leads nowhere is an artifact that cannot be read; pipes and devices are none
        found += (path for path in paths if path.is_file() or path.is_symlink())
    return map(str, sorted(found))


def _unreadable(error: OSError) -> None:
    raise UsageError("TL0902", f"the folder cannot be read: {error.strerror}", file=error.filename)
