"""The command line. ``COMMANDS`` is the registry: a command is one line here and one file beside this one."""

from __future__ import annotations

from typing import NoReturn

COMMANDS: dict[str, str] = {
    "check": "tlir.cli.check",
    "run": "tlir.cli.run",
    "compare": "tlir.cli.compare",
    "locate": "tlir.cli.locate",
    "reduce": "tlir.cli.reduce",
    "show": "tlir.cli.show",
    "emit": "tlir.cli.emit",
    "diff": "tlir.cli.diff",
    "info": "tlir.cli.info",
    "ops": "tlir.cli.ops",
    "upgrade": "tlir.cli.upgrade",
    "reorder": "tlir.cli.reorder",
    "fit": "tlir.cli.fit",
    "cast": "tlir.cli.cast",
    "stress": "tlir.cli.stress",
}
"""Each command's name and the module whose function ``command`` it is, in the order of ``tlir --help``."""


def main() -> NoReturn:
    """The console script ``tlir``: runs the command line and exits with its code."""
    import io
    import os
    import signal
    import sys

    from tlir.cli.group import tlir

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # closed by the caller, as by >&-: nobody wants what goes there
            setattr(sys, name, open(os.devnull, "w", errors="backslashreplace"))  # noqa: SIM115
        # a name in an artifact may hold characters that the terminal's encoding does not have
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # ended by another process, it still takes its temporary files away
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    tlir.main(prog_name="tlir")
