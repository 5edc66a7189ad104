"""The rules that every graph obeys: its structure, and the declared types against the operations' rules.

Structure is required before anything else looks at a graph, so its first violation is raised. Types are checked node by
node, and every violation is returned.
"""

from __future__ import annotations

from collections.abc import Iterator

from tlir.errors import ArtifactError
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import OPERATIONS, Call, Signature, Violation
from tlir.ir.types import MAX_ELEMENTS, MAX_RANK, TensorType


def verify_structure(graph: Graph) -> None:
    """Raise ArtifactError for the first violation of ids, order, arity, results, regions, inputs, outputs or "
    "samples."""
    _verify_body(graph.body, "")
    for k, sample in enumerate(graph.samples):
        for what, tensors, types in (
            ("inputs", sample.inputs, graph.body.input_types),
            ("outputs", sample.outputs, graph.body.output_types),
        ):
            at = f"/samples/{k}/{what}"
            if len(tensors) != len(types):
                raise ArtifactError("TL0214", f"{len(tensors)} {what} for {len(types)} of the graph", pointer=at)
            for position, (tensor, type) in enumerate(zip(tensors, types, strict=True)):
                if tensor.type != type:
                    raise ArtifactError("TL0214", f"is {tensor.type}, the graph has {type}", pointer=f"{at}/{position}")
        for ref, tensor in (sample.trace or {}).items():
            at = f"/samples/{k}/trace"
            if not _is_value(graph.body, ref):
                raise ArtifactError("TL0214", f"there is no value {ref}", pointer=at)
            if tensor.type != graph.body.type_of(ref):
                raise ArtifactError(
                    "TL0214", f"the value {ref} is {tensor.type}, the graph has {graph.body.type_of(ref)}", pointer=at
                )


def _is_value(body: Body, ref: Ref) -> bool:
    return 0 <= ref.node < len(body.nodes) and 0 <= ref.result < len(body.nodes[ref.node].types)


def _verify_body(body: Body, at: str) -> None:
    for position, node in enumerate(body.nodes):
        _verify_node(body, node, position, f"{at}/nodes/{position}")
    listed: set[int] = set()
    for k, node_id in enumerate(body.input_ids):
        where = f"{at}/input_ids/{k}"
        if not 0 <= node_id < len(body.nodes) or body.nodes[node_id].op != "input":
            raise ArtifactError("TL0211", f"{node_id} is not the id of an input node", pointer=where)
        if node_id in listed:
            raise ArtifactError("TL0211", f"input {node_id} is listed twice", pointer=where)
        listed.add(node_id)
    for node in body.nodes:
        if node.op == "input" and node.id not in listed:
            raise ArtifactError(
                "TL0211",
                "this input is not listed in input_ids",
                pointer=f"{at}/nodes/{node.id}",
                node=str(node),
                hint="list it, or remove the node",
            )
    for k, ref in enumerate(body.outputs):
        if not _is_value(body, ref):
            raise ArtifactError("TL0211", f"there is no value {ref}", pointer=f"{at}/output_ids/{k}")


def _verify_node(body: Body, node: Node, position: int, at: str) -> None:
    def error(code: str, message: str, where: str = "", hint: str | None = None) -> ArtifactError:
        return ArtifactError(code, message, pointer=at + where, node=str(node), source=node.source, hint=hint)

    if node.id != position:
        raise error("TL0207", f"expected id {position}, found {node.id}", "/id", "ids count 0, 1, 2, … in order")
    operation = OPERATIONS.get(node.op)
    if operation is None:
        raise error("TL0205", f"there is no operation {node.op!r}", "/op", "`tlir ops` lists the operations")
    if not operation.arity(len(node.inputs)):
        expected = f"at least {operation.minimum}" if operation.variadic else str(len(operation.operands))
        raise error("TL0209", f"{node.op} takes {expected} operands, not {len(node.inputs)}", "/inputs")
    for what, expected_count, given in (
        ("results", operation.results, len(node.types)),
        ("regions", operation.regions, len(node.regions)),
    ):
        if expected_count is not None and expected_count != given:
            raise error("TL0210", f"{node.op} has {expected_count} {what}, not {given}")
    for k, ref in enumerate(node.inputs):
        if ref.node >= position or not _is_value(body, ref):
            if 0 <= ref.node < len(body.nodes) and ref.node >= position:
                message = f"uses {ref}, which is computed " + ("by itself" if ref.node == position else "later")
                raise error(
                    "TL0208", message, f"/inputs/{k}", "nodes stand in topological order; a graph has no cycles"
                )
            raise error("TL0208", f"there is no value {ref}", f"/inputs/{k}")
    for type in node.types:
        if type.rank > MAX_RANK or type.size > MAX_ELEMENTS:
            raise error("TL0216", f"{type} is larger than {MAX_RANK} axes and {MAX_ELEMENTS} elements", "/shape")
    for k, region in enumerate(node.regions):
        _verify_body(region, f"{at}/regions/{k}")


def type_errors(graph: Graph) -> list[ArtifactError]:
    """Every node whose declared type is not what its operation gives, as errors in node order; empty where all hold."""
    return list(_body_type_errors(graph.body, ""))


def _body_type_errors(body: Body, at: str) -> Iterator[ArtifactError]:
    for node in body.nodes:
        where = f"{at}/nodes/{node.id}"
        for k, region in enumerate(node.regions):
            yield from _body_type_errors(region, f"{where}/regions/{k}")
        error = node_type_error(body, node, where)
        if error is not None:
            yield error


def node_type_error(body: Body, node: Node, at: str) -> ArtifactError | None:
    """The violation of the node's type rule, or None where its declared types are right."""
    operands = body.operand_types(node)
    signatures = tuple(Signature(region.input_types, region.output_types) for region in node.regions)
    try:
        inferred = OPERATIONS[node.op].rule(Call(operands, node.attrs, node.types, signatures))
    except Violation as violation:
        return ArtifactError(
            "TL0302",
            f"{violation.message} (constraint {violation.rule} of {node.op})",
            pointer=at,
            node=str(node),
            source=node.source,
            hint=violation.hint or None,
        )
    if inferred == node.types:
        return None
    if len(inferred) != len(node.types):
        message = f"declares {len(node.types)} results, but {node.op} gives {len(inferred)} here"
        return ArtifactError("TL0301", message, pointer=at, node=str(node), source=node.source)
    result = next(k for k, (a, b) in enumerate(zip(inferred, node.types, strict=True)) if a != b)
    given, declared = inferred[result], node.types[result]
    return ArtifactError(
        "TL0301",
        f"declares {declared}, but {node.op} of {', '.join(map(str, operands)) or 'these attributes'} gives {given}",
        pointer=at,
        node=str(node),
        source=node.source,
        hint=_type_hint(node, operands, given, declared),
    )


def _type_hint(node: Node, operands: tuple[TensorType, ...], given: TensorType, declared: TensorType) -> str:
    if given.dtype == declared.dtype or given.shape != declared.shape:
        return f"declare {given}"
    pairs = zip(node.inputs, operands, strict=True)
    places = ", ".join(f"{k} ({ref})" for k, (ref, type) in enumerate(pairs) if type.dtype == given.dtype)
    after = f"declare {given.dtype} and insert convert to {declared.dtype} after node {node.id}"
    if not places:
        return after
    return f"insert convert to {declared.dtype} on operand {places} to compute in {declared.dtype}, or {after}"
