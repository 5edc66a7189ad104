"""Files that are written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from tlir.errors import UsageError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file ``path`` when the block ends, and vanish where it raises.

    A file that is there is replaced with its permissions kept; of a symbolic link the file that it names. What is not a
    regular file (a pipe, a device) is written directly. UsageError TL0109 where it cannot be written, which a file
    without write permission cannot, though its folder would allow replacing it.
    """
    name = os.fspath(path)
    try:
        there = _status(name)
        if there is not None and not stat.S_ISREG(there.st_mode):
            with open(name, "wb") as stream:
                yield stream
            return
        if there is not None and not os.access(name, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        target = os.path.realpath(name)
        temporary = os.path.join(
            os.path.dirname(target), f".{os.path.basename(target)[:200]}.{secrets.token_hex(6)}.tmp"
        )
        try:
            with open(temporary, "xb") as stream:
                yield stream
            if there is not None:
                os.chmod(temporary, stat.S_IMODE(there.st_mode))
            os.replace(temporary, target)
        finally:
            with suppress(OSError):
                os.unlink(temporary)
    except OSError as error:
        raise UsageError("TL0109", f"the file cannot be written: {error.strerror}", file=name) from None


def _status(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)
    except FileNotFoundError:
        return None
