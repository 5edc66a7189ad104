"""``tlir emit``: the code that a graph becomes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tlir.ir.graph import Graph

TARGETS: dict[str, tuple[str, str]] = {
    "kernel": ("tlir.cli.emit", "kernels"),
    "llvm": ("tlir.backends.cpu.emission", "llvm_text"),
    "cuda": ("tlir.backends.cuda.source", "cuda_text"),
}
"""Each target, and the module and function that makes its text of a graph. The function is imported when asked for."""


@click.command("emit", short_help="Print the code that a graph becomes.")
@click.argument("path", metavar="FILE")
@click.option("--target", type=click.Choice(list(TARGETS)), default="kernel", show_default=True, help="What to print.")
@click.option(
    "--json", "as_json", is_flag=True, help="A JSON document with the text and the nodes that have no kernel."
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file.")
def command(path: str, target: str, as_json: bool, output: str | None) -> None:
    """Print the code that the graph of an artifact becomes.

    kernel: the kernels and the steps that run them, as docs/kernels.md describes. A node without a kernel is a step
    that says why. llvm: for each kernel a module for this processor, before LLVM optimises it. cuda: one CUDA C++
    translation unit. The last two need llvmlite (pip install 'tlir[cpu]').
    """
    from tlir.cli.console import Output, to_json
    from tlir.cli.paths import existing, spare
    from tlir.cli.rewriting import write_text
    from tlir.errors import UnsupportedError
    from tlir.ir.verify import type_errors
    from tlir.schema import read

    spare(output, path)
    graph = read(existing(path))
    errors = type_errors(graph)
    if errors:
        raise errors[0]
    if target != "kernel" and find_spec("llvmlite") is None:
        raise UnsupportedError("TL0802", f"the target {target} needs llvmlite", hint="pip install 'tlir[cpu]'")
    module, name = TARGETS[target]
    make: Callable[[Graph], str] = getattr(importlib.import_module(module), name)
    text = make(graph)
    if as_json:
        text = to_json(document(graph, target, text)) + "\n"
    if output is None:
        Output().raw(text, end="")
    else:
        write_text(output, text)


def document(graph: Graph, target: str, text: str) -> dict[str, Any]:
    """The JSON document: ``{"target", "text", "kernels", "left": [{"node", "op", "reason"}]}``."""
    from tlir.kernel.ir import Fallback, Launch
    from tlir.passes.lower import lower

    steps = lower(graph.body).steps
    left = [step for step in steps if isinstance(step, Fallback)]
    return {
        "target": target,
        "text": text,
        "kernels": sum(isinstance(step, Launch) for step in steps),
        "left": [{"node": s.node, "op": graph.nodes[s.node].op, "reason": s.reason} for s in left],
    }


def kernels(graph: Graph) -> str:
    """The program of a graph as text."""
    from tlir.kernel.text import program_text
    from tlir.passes.lower import lower

    return program_text(lower(graph.body))
