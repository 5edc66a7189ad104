"""The group of commands, loaded when used, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from tlir.cli import COMMANDS
from tlir.errors import TlirError, UnsupportedError

BROKEN_PIPE = 141
"""What a shell reports of a program that ended because nobody reads its output: 128 + SIGPIPE."""

INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are the functions ``command`` of the modules in ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[name]).command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the commands are {', '.join(COMMANDS)}"
            ctx.fail(f"there is no command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every error ends here as a message on standard error and an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # the interpreter flushes once more on its way out
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            ctx.exit(BROKEN_PIPE)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            ctx.exit(report(error, debug=bool(ctx.params.get("debug"))))


def report(error: Exception, debug: bool = False) -> int:
    """Print an error on standard error, with its traceback for ``--debug``; the exit code that it asks for."""
    known = as_tlir_error(error)
    if debug:
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    message, *details = known.lines()
    styled = click.style("error: ", fg="red", bold=True) if colour_on_stderr() else "error: "
    click.echo(styled + "\n".join([message, *details]), err=True)
    return known.exit_code


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
