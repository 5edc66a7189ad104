"""``tlir emit``: the code that a graph becomes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tlir.ir.graph import Graph

TARGETS: dict[str, tuple[str, str]] = {
    "kernel": ("tlir.cli.emit", "kernels"),
}
"""Each target, and the module and function that makes its text of a graph. The function is imported when asked for."""


@click.command("emit", short_help="Print the code that a graph becomes.")
@click.argument("path", metavar="FILE")
@click.option("--target", type=click.Choice(list(TARGETS)), default="kernel", show_default=True, help="What to print.")
@click.option("-o", "--output", metavar="FILE", help="Write to a file.")
def command(path: str, target: str, output: str | None) -> None:
    """Print the code that the graph of an artifact becomes.

    kernel: the kernels and the steps that run them, as docs/kernels.md describes. A node without a kernel is a step
    that says why.
    """
    from tlir.cli.console import Output
    from tlir.cli.paths import existing
    from tlir.cli.rewriting import write_text
    from tlir.ir.verify import type_errors
    from tlir.schema import read

    graph = read(existing(path))
    errors = type_errors(graph)
    if errors:
        raise errors[0]
    module, name = TARGETS[target]
    make: Callable[[Graph], str] = getattr(importlib.import_module(module), name)
    text = make(graph)
    if output is None:
        Output().raw(text, end="")
    else:
        write_text(output, text)


def kernels(graph: Graph) -> str:
    """The program of a graph as text."""
    from tlir.kernel.text import program_text
    from tlir.passes.lower import lower

    return program_text(lower(graph.body))
