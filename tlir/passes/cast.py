"""Rewriting a graph to compute in another floating-point format.

Every value of a chosen format gets the target format instead, complex values over it too; integers and Booleans stay.
Where a value of one format meets an operation in another, a ``convert`` is inserted. Nothing is rounded here but the
constants and the samples, each element once from its own word, and the report counts what that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tlir.errors import UsageError
from tlir.floatlib.format import Format
from tlir.ir.graph import Body, Graph, Node, Ref, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType, complex_of
from tlir.ir.verify import type_errors
from tlir.passes.casting.formats import contains, declared_name, source_formats, target_dtype
from tlir.passes.casting.words import Rounding, cast_tensor
from tlir.passes.render.escape import printable

__all__ = ["CastReport", "Rounding", "cast"]


@dataclass(frozen=True)
class CastReport:
    """What a cast did. ``changed`` counts the nodes that compute in another format than before, regions included;
    ``inserted`` the converts that were added; ``dropped`` the program's own that have nothing left to do; ``kept``
    those that still round as before. ``constants`` and ``samples`` say what became of recorded words."""

    target: DType
    changed: int
    inserted: int
    dropped: int
    kept: int
    constants: tuple[Rounding, ...]
    samples: tuple[Rounding, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "to": self.target.name,
            "descriptor": self.target.float_format.to_descriptor(),
            "nodes": self.changed,
            "converts": {"inserted": self.inserted, "dropped": self.dropped, "kept": self.kept},
            "constants": [entry.to_json() for entry in self.constants],
            "samples": [entry.to_json() for entry in self.samples],
        }


def cast(
    graph: Graph,
    to: str | Format,
    *,
    sources: Sequence[str] = (),
    nodes: Sequence[str] = (),
    keep_io: bool = False,
    keep_casts: bool = False,
) -> tuple[Graph, CastReport]:
    """The graph in another floating-point format, and a report.

    ``to`` is a dtype's name, an alias such as "binary128", bits such as "e11m100", or a ``Format``; one that is no
    dtype is declared in the graph's ``formats``. ``sources`` are the formats that change (every one without them).
    ``nodes`` are ids or names of inputs, constants and other nodes of the graph itself; without them every node is
    meant, those of regions too. A node with regions is chosen as a whole.

    ``keep_io`` leaves inputs and outputs as they are, with converts behind and before them. A conversion of the
    program between two floating-point formats is an intermediate precision like any other and changes too, which may
    leave it nothing to do; ``keep_casts`` keeps the rounding of those that can round. The accumulators of reductions
    and contractions change as the values do, and are never left narrower than a result that changed.

    Words of samples are converted as their inputs and outputs are, so the result can be compared with what the
    frontend recorded.

    UsageError TL0901 for names that are none, TL0213 for a format that cannot be; TL1001 where nothing of what was
    named would change, or an operation would lose its meaning; ArtifactError where the declared types do not hold.
    """
    for error in type_errors(graph):
        raise error
    target = target_dtype(to, graph.formats)
    formats = source_formats(sources, graph.formats)
    chosen = _selected(graph.body, nodes)
    if keep_io and chosen is not None:
        for node_id in graph.body.input_ids:
            if node_id in chosen:
                message = "an input cannot both be cast and keep its type"
                raise UsageError("TL0901", message, node=printable(str(graph.nodes[node_id])))
    rewriter = _Rewriter(_Mapping(target, formats), keep_casts)
    body, places = rewriter.body(graph.body, "", chosen, keep_io)
    if not rewriter.changed and (sources or nodes):
        which = "chosen node" if nodes else "node"
        of = f"of {' or '.join(map(printable, sources))} " if sources else ""
        raise UsageError("TL1001", f"no {which} {of}computes in a floating-point format other than {target.name}")
    roundings: list[Rounding] = []
    samples = tuple(_cast_sample(graph, body, sample, k, places, roundings) for k, sample in enumerate(graph.samples))
    changed = replace(graph, body=body, samples=samples, formats=_formats(graph.formats, body, target))
    report = CastReport(
        target,
        rewriter.changed,
        rewriter.inserted,
        rewriter.dropped,
        rewriter.kept,
        tuple(rewriter.constants),
        tuple(roundings),
    )
    return changed, report


def _selected(body: Body, names: Sequence[str]) -> Collection[int] | None:
    """Ids of the nodes that are named; None without names, which stands for all."""
    if not names:
        return None
    found: set[int] = set()
    for name in names:
        ids = [node.id for node in body.nodes if node.name == name]
        number = name.removeprefix("%")
        if not ids and number.isascii() and number.isdigit() and len(number) < 19 and int(number) < len(body.nodes):
            ids = [int(number)]
        if not ids:
            raise UsageError("TL0901", f"there is no node {printable(name)!r}", hint="`tlir show` lists the nodes")
        found.update(ids)
    return found


def _formats(declared: Mapping[str, Format], body: Body, target: DType) -> dict[str, Format]:
    """The declarations that the graph still needs, and that of the target where it is no dtype by itself."""
    used = {type.dtype.component.name for node in body.walk() for type in node.types if type.dtype.format}
    used |= {
        node.attrs["accumulate"].dtype.component.name
        for node in body.walk()
        if node.attrs.get("accumulate") and node.attrs["accumulate"].dtype
    }
    formats = {name: fmt for name, fmt in declared.items() if name in used}
    if target.name in used and declared_name(target.name):
        formats[target.name] = target.float_format
    return formats


@dataclass(frozen=True)
class _Mapping:
    """The dtype that stands for another one: the target for the source formats (None: for all)."""

    target: DType
    formats: Collection[Format] | None

    def __call__(self, dtype: DType) -> DType:
        if dtype.format is None or (self.formats is not None and dtype.format not in self.formats):
            return dtype
        return complex_of(self.target) if dtype.is_complex else self.target


@dataclass
class _Scope:
    """A body as it is rewritten: the new nodes, where each old value is now, and the conversions already made."""

    nodes: list[Node] = field(default_factory=list)
    places: dict[Ref, Ref] = field(default_factory=dict)
    converted: dict[tuple[Ref, DType], Ref] = field(default_factory=dict)

    def type_of(self, ref: Ref) -> TensorType:
        return self.nodes[ref.node].types[ref.result]

    def add(self, node: Node) -> int:
        self.nodes.append(replace(node, id=len(self.nodes)))
        return len(self.nodes) - 1


class _Rewriter:
    """Rewrites bodies, and counts."""

    def __init__(self, mapping: _Mapping, keep_casts: bool) -> None:
        self.mapping, self.keep_casts = mapping, keep_casts
        self.changed = self.inserted = self.dropped = self.kept = 0
        self.constants: list[Rounding] = []

    def body(
        self, body: Body, prefix: str, chosen: Collection[int] | None, keep_io: bool
    ) -> tuple[Body, dict[Ref, Ref]]:
        """The body with the chosen nodes (None: all) in the target format, and where each old value is in it."""
        scope = _Scope()
        for node in body.nodes:
            cast = (chosen is None or node.id in chosen) and not (keep_io and node.op == "input")
            self._node(body, node, scope, f"{prefix}{node.id}", cast)
        outputs = [scope.places[ref] for ref in body.outputs]
        if keep_io:
            outputs = [
                self._converted(scope, ref, type.dtype, body.nodes[old.node])
                for ref, type, old in zip(outputs, body.output_types, body.outputs, strict=True)
            ]
        inputs = tuple(scope.places[Ref(i)].node for i in body.input_ids)
        return Body(tuple(scope.nodes), inputs, tuple(outputs)), scope.places

    def _node(self, body: Body, node: Node, scope: _Scope, place: str, cast: bool) -> None:
        mapped = self.mapping if cast else _unchanged
        operands = body.operand_types(node)
        types = tuple(TensorType(type.shape, mapped(type.dtype)) for type in node.types)
        attrs = self._attrs(node, types, place, mapped)
        if types != node.types or attrs != node.attrs or any(mapped(type.dtype) != type.dtype for type in operands):
            self.changed += 1
            self._require_meaning(node, operands, mapped)
        if node.op == "convert" and cast and self._drop_or_keep(node, operands[0], types[0], scope):
            return
        inputs = tuple(
            self._converted(scope, scope.places[ref], mapped(type.dtype), node)
            for ref, type in zip(node.inputs, operands, strict=True)
        )
        bits_read = node.op == "bitcast_convert" and operands[0].dtype.is_integer
        made = replace(
            node,
            inputs=inputs,
            types=node.types if bits_read else types,
            attrs=attrs,
            regions=tuple(
                self.body(region, f"{place}.{k}.", None, False)[0] if cast else region
                for k, region in enumerate(node.regions)
            ),
        )
        position = scope.add(made)
        for k in range(len(node.types)):
            scope.places[Ref(node.id, k)] = Ref(position, k)
        if bits_read:
            scope.places[Ref(node.id)] = self._converted(scope, Ref(position), types[0].dtype, node)

    def _converted(self, scope: _Scope, ref: Ref, dtype: DType, node: Node) -> Ref:
        """The value in this dtype: itself, or a convert of it, which ``node`` is the reason for."""
        type = scope.type_of(ref)
        if type.dtype == dtype:
            return ref
        if (ref, dtype) not in scope.converted:
            convert = Node(0, "convert", (ref,), {}, (TensorType(type.shape, dtype),), source=node.source)
            scope.converted[ref, dtype] = Ref(scope.add(convert))
            self.inserted += 1
        return scope.converted[ref, dtype]

    def _drop_or_keep(self, node: Node, operand: TensorType, result: TensorType, scope: _Scope) -> bool:
        """Whether a conversion of the program's own is done with: by keeping its rounding, or as nothing is left."""
        before, after = operand.dtype, node.type.dtype
        if before.format is None or after.format is None or before == after:
            return False
        value = scope.places[node.inputs[0]]
        if self.keep_casts and result != node.type and not contains(after.format, before.format):
            position = scope.add(replace(node, inputs=(value,)))
            scope.places[Ref(node.id)] = self._converted(scope, Ref(position), result.dtype, node)
            self.kept += 1
            return True
        value = self._converted(scope, value, self.mapping(before), node)
        if scope.type_of(value) != result:
            return False
        scope.places[Ref(node.id)] = value
        self.dropped += 1
        return True

    def _attrs(self, node: Node, types: tuple[TensorType, ...], place: str, mapped: Mapped) -> Mapping[str, Any]:
        """The attributes with constant words and the accumulator's dtype rewritten."""
        attrs = dict(node.attrs)
        for name, value in node.attrs.items():  # the words of a constant, and what a gather fills with
            if isinstance(value, Tensor) and types != node.types:
                attrs[name], rounding = cast_tensor(value, types[0].dtype, "constant", place, node.name)
                self.constants.append(rounding)
        accumulate: Accumulate | None = attrs.get("accumulate")
        if accumulate is not None and accumulate.dtype is not None:
            dtype, result = mapped(accumulate.dtype), types[0].dtype
            narrower = dtype.format and result.format and not contains(dtype.format, result.format)
            default = dtype == result or (narrower and types != node.types)
            if default and (types != node.types or dtype != accumulate.dtype):
                attrs["accumulate"] = replace(accumulate, dtype=None)
            elif dtype != accumulate.dtype:
                attrs["accumulate"] = replace(accumulate, dtype=dtype)
            if attrs["accumulate"] == Accumulate():
                del attrs["accumulate"]
        return attrs

    def _require_meaning(self, node: Node, operands: Sequence[TensorType], mapped: Mapped) -> None:
        """UsageError TL1001 for an operation about the representation itself, which would say something else."""
        target = self.mapping.target
        message = None
        if node.op == "next_after":
            message = f"the next number of {operands[0].dtype.name} is not the next one of {target.name}"
        elif node.op == "bitcast_convert":
            before, after = operands[0].dtype, node.type.dtype
            if mapped(before) != before and before != after:
                message = f"the bits of a {before.name} number are not those of a {target.name} one"
        elif node.op == "reduce_precision":
            fmt = target.float_format
            if node.attrs["exponent_bits"] > fmt.exponent_bits or node.attrs["mantissa_bits"] > fmt.fraction_bits:
                bits = f"{node.attrs['exponent_bits']} exponent and {node.attrs['mantissa_bits']} fraction bits"
                message = f"it rounds to {bits}, which {target.name} does not have"
        if message is not None:
            hint = "leave this node in its format: choose others with --node, or formats with --from"
            raise UsageError("TL1001", message, node=printable(str(node)), source=node.source, hint=hint)


Mapped = Callable[[DType], DType]


def _unchanged(dtype: DType) -> DType:
    return dtype


def _cast_sample(
    graph: Graph, body: Body, sample: Sample, number: int, places: Mapping[Ref, Ref], report: list[Rounding]
) -> Sample:
    """The sample's words in the types of the new body; ``report`` gets what that does to inputs and outputs."""

    def all_of(what: str, tensors: Sequence[Tensor], types: Sequence[TensorType], names: Sequence[str]) -> Any:
        made = []
        for k, (tensor, type) in enumerate(zip(tensors, types, strict=True)):
            if tensor.type != type:
                tensor, rounding = cast_tensor(tensor, type.dtype, what, f"{number}/{k}", names[k])
                report.append(rounding)
            made.append(tensor)
        return tuple(made)

    names = [f"output{[k] if len(body.outputs) > 1 else ''}" for k in range(len(body.outputs))]
    inputs = all_of("input", sample.inputs, body.input_types, graph.body.input_names())
    outputs = all_of("output", sample.outputs, body.output_types, names)
    trace = None
    if sample.trace is not None:
        trace = {}
        for ref, tensor in sample.trace.items():
            new = places[ref]
            if new not in trace:  # a conversion that was dropped has the value of its operand
                trace[new] = cast_tensor(tensor, body.type_of(new).dtype, "trace", "", None)[0]
    return Sample(inputs, outputs, trace)
