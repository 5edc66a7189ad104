"""The group of commands, loaded when used, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import click

from tlir.cli import COMMANDS
from tlir.errors import TlirError, UnsupportedError, UsageError

BROKEN_PIPE = 141
"""What a shell reports of a program that ended because nobody reads its output: 128 + SIGPIPE."""

INTERRUPTED = 130

_ARGUMENTS = "tlir.arguments"
"""Where the context keeps the name of the command and what follows it."""


class LazyGroup(click.Group):
    """A group whose commands are the functions ``command`` of the modules in ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[name]).command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except OSError as error:
            ctx.exit(_unwritten(error))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        ctx.meta[_ARGUMENTS] = args
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the commands are {', '.join(COMMANDS)}"
            ctx.fail(f"there is no command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every error ends here as a message on standard error and an exit code, and under --json also
        as a JSON document on standard output."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except (click.exceptions.Exit, click.Abort):
            raise
        except click.ClickException as error:
            _print_document(ctx, UsageError("TL0901", error.format_message()))
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.filename is None:
                ctx.exit(_unwritten(error))
            code = report(error, debug=bool(ctx.params.get("debug")))
            _print_document(ctx, as_tlir_error(error))
            ctx.exit(code)


def _unwritten(error: OSError) -> int:
    """The exit code where standard output cannot be written; no message where only its reader has gone."""
    # the interpreter flushes once more on its way out
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    return report(UsageError("TL0109", f"standard output cannot be written: {error.strerror}"))


def _print_document(ctx: click.Context, error: TlirError) -> None:
    """The JSON document of a command that could not be carried out, if its arguments ask for JSON."""
    arguments = ctx.meta.get(_ARGUMENTS, ())
    if not any(a == "--json" or a == "--format=json" or (b, a) == ("--format", "json") for b, a in pairwise(arguments)):
        return
    from tlir.cli.console import Output, to_json

    name = arguments[0] if arguments[0] in COMMANDS else None
    # standard output may be what failed; the message and the exit code have said so
    with suppress(OSError):
        Output().raw(to_json({"command": name, "ok": False, "error": error.to_json()}))


def report(error: Exception, debug: bool = False) -> int:
    """Print an error on standard error, with its traceback for ``--debug``; the exit code that it asks for."""
    known = as_tlir_error(error)
    if debug:
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    message, *details = map(_printable, known.lines())
    styled = click.style("error: ", fg="red", bold=True) if colour_on_stderr() else "error: "
    click.echo(styled + "\n".join([message, *details]), err=True)
    return known.exit_code


def _printable(line: str) -> str:
    """The line without control characters, which the name of a file may hold."""
    return "".join(c if c.isprintable() or c in " \u00a0" else c.encode("unicode_escape").decode() for c in line)


@contextmanager
def about(file: str) -> Iterator[None]:
    """Errors inside are about this file where they name no other."""
    try:
        yield
    except TlirError as error:
        error.file = error.file or file
        raise


def as_tlir_error(error: Exception) -> TlirError:
    """The error itself, or what stands for any other exception: too little memory, or a fault in tlir."""
    if isinstance(error, TlirError):
        return error
    if isinstance(error, MemoryError):
        return UnsupportedError("TL0603", "there is not enough memory")
    text = f"{type(error).__name__}: {error}"
    return TlirError(
        "TL9901",
        f"a fault in tlir: {text if len(text) <= 300 else text[:300] + '…'}",
        hint="please report it with the artifact and what `tlir --debug …` prints",
    )


def colour_on_stderr() -> bool:
    """Whether messages are coloured: on a terminal, unless NO_COLOR is set."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"tlir {version('tlir')}")
        except PackageNotFoundError:
            click.echo("tlir, not installed, from a source tree")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, help="Print the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version and exit.",
)
def tlir(debug: bool) -> None:
    """Check, run and compare tensor computations that were captured from JAX or PyTorch.

    Results go to standard output, messages to standard error.

    \b
    Exit codes: 0 yes, 1 no (a check or comparison failed), 2 wrong usage,
    3 not a valid artifact, 4 not possible here, 70 a fault in tlir.
    """
