"""Options and the frame that the commands over many artifacts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from tlir.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def reporting(formats: Sequence[str]) -> Callable[[F], F]:
    """Adds FILE…, --json, --format and --quiet."""

    def decorate(function: F) -> F:
        choices = click.Choice(("text", "json", *formats))
        for option in (
            click.option("--quiet", "-q", is_flag=True, help="Show only what does not pass, and the summary."),
            click.option("--format", "format", type=choices, help="How the report is written (text)."),
            click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
            click.argument("paths", nargs=-1, required=True, metavar="FILE…"),
        ):
            function = option(function)
        return function

    return decorate


def chosen_format(format: str | None, as_json: bool) -> str:
    """The format that --format and --json ask for. UsageError TL0901 where they contradict each other."""
    if as_json and format not in (None, "json"):
        raise UsageError("TL0901", f"--json and --format {format} exclude each other")
    return "json" if as_json else format or "text"


def write_report(
    command: str,
    format: str,
    quiet: bool,
    files: Sequence[str],
    examine: Callable[[str], Any],
    show: Callable[[Any, Any], None],
    cases: Callable[[Any], Iterable[Any]],
    progress: Any,
    output: Any,
    debug: bool,
    after: Callable[[Any], None] | None = None,
) -> int:
    """Examine every file and write the report: text as it goes, with ``show(output, outcome)``, everything else at the
    end. ``after`` is called with each outcome. Messages about artifacts that are not valid go to standard error.
    Returns the exit code."""
    from tlir.cli import formats
    from tlir.cli.console import to_json
    from tlir.cli.group import report
    from tlir.cli.outcome import document, exit_code, process, summary

    outcomes = []
    for outcome in process(files, examine):
        outcomes.append(outcome)
        if after is not None:
            after(outcome)
        if format == "text" and not (quiet and outcome.status == "passed"):
            show(output, outcome)
        if outcome.exception is not None and outcome.error is not None:
            with progress.hidden():
                output.stream.flush()
                if debug and outcome.status == "fault":
                    report(outcome.exception, debug)
                else:
                    report(outcome.error)
        progress.advance()
    if format == "text":
        if len(files) > 1 or quiet:
            code = exit_code(outcomes)
            output.line((summary(outcomes), "passed" if code == 0 else "failed"))
        return exit_code(outcomes)
    progress.close()
    found = [case for outcome in outcomes for case in cases(outcome)]
    if format == "json":
        output.raw(to_json(document(command, outcomes)))
    elif format == "junit":
        output.raw(formats.junit(command, found))
    elif format == "sarif":
        output.raw(to_json(formats.sarif(found)))
    elif text := formats.github(found):
        output.raw(text)
    return exit_code(outcomes)


def error_case(outcome: Any) -> Any:
    """The case of an artifact that could not be examined."""
    from tlir.cli.formats import Case, Remark

    error = outcome.error
    remark = Remark("error", error.code, error.message, error.hint, error.node, error.pointer, error.source)
    return Case(outcome.file, "read" if outcome.status == "invalid" else "run", "error", error.message, (remark,))
