"""``tlir run``: the outputs of an artifact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from types import TracebackType

    from tlir.cli.console import Output
    from tlir.cli.values import Number
    from tlir.ir.graph import Node
    from tlir.ir.tensor import Tensor

VALUES = 1000
"""The JSON document has readable values beside the words of outputs of up to so many elements."""

STEPS = 200
"""The table of a recorded scalar has a row for each of up to so many steps, of more the first and the last."""

FLAG_NAMES = ("invalid", "divide_by_zero", "overflow", "underflow", "inexact")


@click.command("run", short_help="Run an artifact and show its outputs.")
@click.argument("path", metavar="FILE")
@click.option(
    "--input",
    "given",
    metavar="NAME=VALUE",
    multiple=True,
    help="An input: a .npy or .json file, or JSON text (numbers are read exactly; strings such as 0x1.8p3, 1/3 and nan "
    "too). Inputs that are not given are the sample's.",
)
@click.option("--sample", metavar="K", type=int, default=0, help="Which recorded sample's inputs to use (0).")
@click.option("--repeat", "steps", metavar="N", type=click.IntRange(min=1), help="Run N steps, one after the other.")
@click.option(
    "--carry",
    metavar="OUT=IN",
    multiple=True,
    help="With --repeat: the output OUT of each step is the input IN of the next; both may name a tree of values.",
)
@click.option(
    "--each",
    metavar="NAME=VALUE",
    multiple=True,
    help="With --repeat: an input with a value for each step, along a leading axis of N; given as for --input.",
)
@click.option(
    "--record",
    metavar="OUT",
    multiple=True,
    help="With --repeat: keep the output OUT of every step, along a leading axis of N.",
)
@click.option("--device", metavar="DEVICE", default="auto", help="reference, cpu, gpu, or by the work (auto).")
@click.option(
    "--print",
    "style",
    type=click.Choice(("decimal", "hex", "rational")),
    help="How numbers are written, always exactly: the shortest decimal (decimal), 0x1.8p+1, or 3/8.",
)
@click.option("--words", is_flag=True, help="Show the hexadecimal words in place of the values.")
@click.option("--flags", is_flag=True, help="Show which nodes raised which IEEE 754 flags at how many elements.")
@click.option("--stats", is_flag=True, help="Show kernels, fused nodes, bytes moved, and what the reference evaluated.")
@click.option(
    "--time", "timed", is_flag=True, help="Run twice, and show the time of loading, lowering, compiling, runs."
)
@click.option("--output", metavar="FILE", help="Write the outputs to FILE.json, .npz, .npy or .safetensors.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document with the exact words.")
@click.pass_context
def command(
    ctx: click.Context,
    path: str,
    given: tuple[str, ...],
    sample: int,
    steps: int | None,
    carry: tuple[str, ...],
    each: tuple[str, ...],
    record: tuple[str, ...],
    device: str,
    style: str | None,
    words: bool,
    flags: bool,
    stats: bool,
    timed: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Run an artifact on its recorded inputs, or on those given, and show its outputs.

    Values are shown as the shortest decimals that read back to the same words, or as --print says; of large outputs the
    corners, and statistics in decimal.

    With --repeat the outputs of one step become inputs of the next: --carry params=params carries every output below
    params (output['params']…) to the input of the same path, --carry 0=x the first output to x. What is shown is the
    last step's, or of every step what is recorded; --output and --json have both.
    """
    from tlir.api import load
    from tlir.backends import prepare, run
    from tlir.backends.automatic import chosen
    from tlir.backends.iterate import iterate
    from tlir.cli.console import Output, counted, to_json
    from tlir.cli.group import about
    from tlir.cli.inputs import gather, gather_each
    from tlir.cli.outputs import check_output, require_holdable, write_output
    from tlir.cli.paths import existing, spare
    from tlir.cli.progress import Progress
    from tlir.cli.values import NUMBERS
    from tlir.cli.work import Work, show_stats, show_times
    from tlir.errors import UsageError
    from tlir.iteration import carries, recorded, split_pair

    if words and style is not None:
        raise UsageError("TL0901", "--words and --print exclude each other")
    for option, given_to_it in (("--carry", carry), ("--each", each), ("--record", record)):
        if given_to_it and steps is None:
            raise UsageError("TL0901", f"{option} needs --repeat", hint="say how many steps: --repeat N")
    if steps is not None and (stats or timed):
        raise UsageError("TL0901", "--stats and --time are of one run, not of --repeat")
    number = NUMBERS[style or "decimal"]
    suffix = "" if output is None else check_output(output)
    spare(output, path)
    work = Work()
    graph = work.loaded(lambda: load(existing(path)))
    device = work.device = chosen(device, graph.ir.body, plain=not flags, runs=steps or 1)
    names = graph.output_names
    if output is not None:
        require_holdable(suffix, names, graph.ir.body.output_types)
    counts = FlagCounts()
    collect = counts.add if flags else None
    out = Output()
    kept: list[int] = []
    with about(path):
        if steps is None:
            with Progress("running", len(graph.ir.nodes), out) as progress:
                # only the reference goes node by node
                observe = (lambda node, values: progress.advance()) if device == "reference" else None
                inputs = gather(graph, given, sample)
                results = work.run(lambda: run(graph.ir, inputs, device=device, observe=observe, flags=collect), timed)
        else:
            kept = recorded(graph.ir, record)
            pairs = carries(graph.ir, [split_pair(graph.ir, text) for text in carry])
            stacked = gather_each(graph, each, steps)
            with _Steps(steps, out) as progress:
                results = iterate(
                    graph.ir,
                    steps,
                    gather(graph, given, sample, stacked) or prepare(graph.ir),
                    pairs,
                    each=stacked,
                    record=kept,
                    device=device,
                    flags=collect,
                    stepped=progress.reach,
                )
    raised = counts.rows()
    document = _document(path, device, names, results, raised if flags else None, number)
    if steps is not None:
        document["repeat"] = {
            "steps": steps,
            "carried": [[names[a], graph.input_names[b]] for a, b in pairs],
            "recorded": [names[k] for k in kept],
        }
    if stats:
        document["stats"] = work.stats(graph.ir)
    if timed:
        document["time"] = work.times(graph.ir)
    if output is not None:
        write_output(output, suffix, names, results, document)
    if as_json:
        out.raw(to_json(document))
        return
    curves = [k for k in kept if len(results[k].shape) == 1]
    shown = kept or range(len(results))
    for k in shown:
        if k not in curves:
            _show(out, names[k], results[k], words, number)
    if curves:
        _show_curves(out, [(names[k], results[k]) for k in curves], words, number)
    if hidden := len(results) - len(shown):
        text = f"{counted(hidden, 'other output')} of the last step not shown; --output writes everything"
        out.line((text, "label"))
    if not results:
        out.line("the graph returns nothing")
    if flags:
        _show_flags(out, raised)
    if stats:
        show_stats(out, graph.ir, document["stats"])
    if timed:
        show_times(out, document["time"])


def _show(output: Output, name: str, tensor: Tensor, words: bool, number: Number) -> None:
    from tlir.cli.values import array_text, is_abbreviated, statistics

    heading = ((name, "heading"), f"  {tensor.type}")
    if not tensor.shape:
        output.line(*heading, "  ", array_text(tensor, words, None, number))
        return
    output.line(*heading)
    width = None if output.width is None else output.width - 2
    output.lines(array_text(tensor, words, width, number), indent=2)
    if is_abbreviated(tensor):
        parts = "  ".join(f"{key} {value}" for key, value in statistics(tensor).items())
        output.line((f"{tensor.type.size} elements: {parts}", "label"), indent=2)


def _show_curves(output: Output, curves: Sequence[tuple[str, Tensor]], words: bool, number: Number) -> None:
    """A row per step, a column per scalar output; of very many steps the first and the last."""
    from functools import partial

    from tlir.compare.text import element_text, element_words

    text = element_words if words else partial(element_text, number=number)
    steps = curves[0][1].shape[0]
    shown = list(range(steps))
    if steps > STEPS:
        shown = [*shown[: STEPS // 2], *shown[-(STEPS // 2) :]]
    rows = [(str(step + 1), *(text(tensor, step) for _, tensor in curves)) for step in shown]
    if steps > STEPS:
        rows.insert(STEPS // 2, ("…", *("" for _ in curves)))
    output.table((">step", *(f">{name}" for name, _ in curves)), rows)


class _Steps:
    """A progress bar that counts steps, and a word on where an interruption came."""

    def __init__(self, steps: int, output: Output) -> None:
        from tlir.cli.progress import Progress

        self._steps, self._done = steps, 0
        self._progress = Progress("steps", steps, output)

    def reach(self, done: int) -> None:
        self._done = done
        self._progress.advance()

    def __enter__(self) -> _Steps:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            click.echo(f"after {self._done} of {self._steps} steps; nothing is written", err=True)


class FlagCounts:
    """For every node at how many elements it raised each flag, summed over all of its evaluations."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[Node, dict[str, int]]] = {}

    def add(self, node: Node, bits: Any) -> None:
        import numpy as np

        from tlir.floatlib.rounding import Flags

        _, counts = self._counts.setdefault(id(node), (node, dict.fromkeys(("elements", *FLAG_NAMES), 0)))
        counts["elements"] += int(bits.size)
        for name in FLAG_NAMES:
            counts[name] += int(np.count_nonzero(bits & int(Flags[name.upper()])))

    def rows(self) -> list[tuple[Node, dict[str, int]]]:
        return list(self._counts.values())


def _show_flags(output: Output, raised: Sequence[tuple[Node, dict[str, int]]]) -> None:
    some = [(node, counts) for node, counts in raised if any(counts[name] for name in FLAG_NAMES)]
    quiet = len(raised) - len(some)
    output.blank()
    if some:
        output.line(("flags", "heading"), ": at how many elements each node raised them")
        rows = [
            (
                str(node),
                str(node.type),
                str(counts["elements"]),
                *(str(counts[name] or "") for name in FLAG_NAMES),
                f"{node.source.file}:{node.source.line}" if node.source else "",
            )
            for node, counts in some
        ]
        headings = ("node", "type", ">elements", *(f">{name.replace('_', ' ')}" for name in FLAG_NAMES), "source")
        output.table(headings, rows, indent=2)
    if quiet or not some:
        nodes = "node" if quiet == 1 else "nodes"
        rest = f"{quiet} {'other ' if some else ''}{nodes} of arithmetic or conversion raised no flag"
        output.line((rest if raised else "no node computes or converts floating-point numbers", "label"), indent=2)


def _document(
    path: str,
    device: str,
    names: Sequence[str],
    results: Sequence[Tensor],
    raised: list[tuple[Node, Any]] | None,
    number: Number,
) -> dict[str, Any]:
    from tlir.cli.values import nested, statistics
    from tlir.schema.words import to_hex

    outputs = []
    for name, tensor in zip(names, results, strict=True):
        parts: dict[str, Any] = {
            "name": name,
            "dtype": tensor.dtype.name,
            "shape": list(tensor.shape),
            "words": to_hex(tensor.words, tensor.type),
        }
        if tensor.type.size <= VALUES:
            parts["values"] = nested(tensor, number)
        else:
            parts["statistics"] = statistics(tensor)
        outputs.append(parts)
    document: dict[str, Any] = {"command": "run", "file": path, "device": device, "outputs": outputs}
    if raised is not None:
        document["flags"] = [_flags_json(node, counts) for node, counts in raised]
    return document


def _flags_json(node: Node, counts: dict[str, int]) -> dict[str, Any]:
    parts: dict[str, Any] = {"node": str(node), "dtype": node.type.dtype.name, "shape": list(node.type.shape), **counts}
    if node.source:
        parts["source"] = {"file": node.source.file, "line": node.source.line, "function": node.source.function}
    return parts
