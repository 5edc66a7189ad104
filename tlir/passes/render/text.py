"""A graph as text: one value per line, in the order of the nodes.

    graph "loss" {
      %0: float32[4] = input "x"
      %1: float32[4] = multiply(%0, %0)   // model.py:12 loss
      %2: float32[] = reduce(%1) {dimensions = [0], reducer = add}   // model.py:12 loss
      return %2
    }

Every character is printable, whatever the artifact says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlir.errors import Source
from tlir.ir.graph import Body, Graph, Node, Producer, Ref
from tlir.ir.tree import Container, Leaf, Tree
from tlir.passes.render.escape import printable, quoted
from tlir.passes.render.values import attribute_text

INDENT = "  "
CONTINUED = "    "


def source_text(source: Source) -> str:
    """``file:line function``, printable."""
    return printable(f"{source.file}:{source.line}" + (f" {source.function}" if source.function else ""))


def type_text(node: Node) -> str:
    """The node's declared types, several in parentheses."""
    types = [printable(str(type)) for type in node.types]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def node_pieces(node: Node) -> list[str]:
    """The parts of a node's line: where one ends, a line may be broken."""
    pieces = [f"%{node.id}: {type_text(node)} ="]
    call = printable(node.op)
    attrs = [(name, node.attrs[name]) for name in sorted(node.attrs)]
    if node.op == "constant" and "value" in node.attrs:
        pieces.append(f"{call} {attribute_text(node.attrs['value'])}")
        attrs = [(name, value) for name, value in attrs if name != "value"]
    elif node.inputs:
        operands = [str(ref) for ref in node.inputs]
        pieces.append(f"{call}({operands[0]}" + (")" if len(operands) == 1 else ","))
        pieces += [ref + ("," if k < len(operands) - 1 else ")") for k, ref in enumerate(operands[1:], 1)]
    else:
        pieces.append(call)
    texts = [f"{printable(name)} = {attribute_text(value)}" for name, value in attrs]
    for k, text in enumerate(texts):
        pieces.append(("{" if k == 0 else "") + text + ("}" if k == len(texts) - 1 else ","))
    if node.name is not None:
        pieces.append(quoted(node.name))
    return pieces


def node_line(node: Node) -> str:
    """The node on one line, without its regions and its source."""
    return " ".join(node_pieces(node))


def graph_lines(graph: Graph, width: int | None = None) -> Iterator[str]:
    """The lines of the whole graph; lines longer than ``width`` columns are broken between their parts."""
    if graph.producer:
        yield from _broken(["//", *_separate(producer_parts(graph.producer))], "", width)
    for name, fmt in sorted(graph.formats.items()):
        fields = [f"{key} = {attribute_text(value)}" for key, value in fmt.to_descriptor().items()]
        yield from _broken([f"format {printable(name)}", *_braced(fields)], "", width)
    samples = f"{len(graph.samples)} sample{'' if len(graph.samples) == 1 else 's'}"
    traced = sum(1 for sample in graph.samples if sample.trace is not None)
    notes = [samples + (f", {traced} with a trace" if traced else "")] if graph.samples else []
    notes += [f"tolerance {printable(graph.tolerance)}"] if graph.tolerance is not None else []
    if notes:
        yield from _broken(["//", *_separate(notes)], "", width)
    yield f"graph {quoted(graph.name)} {{"
    if isinstance(graph.input_tree, Container):
        leaves = [Ref(i) for i in graph.body.input_ids]
        yield from _broken(["// called with", *_separate(_call_parts(graph.input_tree, leaves))], INDENT, width)
    yield from _body_lines(graph.body, INDENT, width, graph.output_tree)
    yield "}"


def graph_text(graph: Graph, width: int | None = None) -> str:
    """The whole graph as text that ends with a line feed."""
    return "\n".join(graph_lines(graph, width)) + "\n"


def producer_parts(producer: Producer) -> list[str]:
    """Who captured the graph and how its outputs were made, as short printable texts."""
    first = f"captured from {producer.frontend}" + (
        f" {producer.frontend_version}" if producer.frontend_version else ""
    )
    parts = [first + (f" on {producer.platform}" if producer.platform else ""), f"outputs {producer.outputs}"]
    parts += [f"capture {producer.capture}"] if producer.capture else []
    parts += [f"{name} = {attribute_text(value)}" for name, value in sorted(producer.flags.items())]
    return [printable(part) for part in parts]


def tree_text(tree: Tree, leaves: Sequence[Ref]) -> str:
    """A tree as Python writes it, its leaves as values."""
    if isinstance(tree, Leaf):
        return str(leaves[tree.index])
    children = [tree_text(child, leaves) for child in tree.children]
    match tree.kind:
        case "none":
            return "None"
        case "list":
            return f"[{', '.join(children)}]"
        case "tuple":
            return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
        case "dict":
            keys = [quoted(key) if isinstance(key, str) else str(key) for key in tree.keys]
            return "{" + ", ".join(f"{key}: {child}" for key, child in zip(keys, children, strict=True)) + "}"
        case "namedtuple":
            fields = [f"{printable(str(key))} = {child}" for key, child in zip(tree.keys, children, strict=True)]
            return f"{printable(tree.name)}({', '.join(fields)})"
        case _:
            return f"({', '.join(_call_parts(tree, leaves))})"


def _call_parts(tree: Container, leaves: Sequence[Ref]) -> list[str]:
    children = [tree_text(child, leaves) for child in tree.children]
    split = len(children) - len(tree.keys)
    named = zip(tree.keys, children[split:], strict=True)
    return children[:split] + [f"{printable(str(key))} = {child}" for key, child in named]


def _body_lines(body: Body, indent: str, width: int | None, tree: Tree | None = None) -> Iterator[str]:
    for node in body.nodes:
        pieces = node_pieces(node)
        comment = f"  // {source_text(node.source)}" if node.source else ""
        if node.regions:
            pieces.append("{")
        yield from _broken([*pieces, *([comment] if comment else [])], indent, width)
        for k, region in enumerate(node.regions):
            if k:
                yield f"{indent}}}, {{"
            yield from _body_lines(region, indent + INDENT, width)
        if node.regions:
            yield f"{indent}}}"
    if tree is not None:
        yield from _broken(["return", tree_text(tree, body.outputs)], indent, width)
    else:
        yield from _broken(["return", *_separate([str(ref) for ref in body.outputs])], indent, width)


def _separate(parts: Sequence[str]) -> list[str]:
    return [part + ("," if k < len(parts) - 1 else "") for k, part in enumerate(parts)]


def _braced(parts: Sequence[str]) -> list[str]:
    separate = _separate(parts)
    return ["{" + separate[0], *separate[1:-1], separate[-1] + "}"] if len(parts) > 1 else ["{" + "".join(parts) + "}"]


def _broken(pieces: Sequence[str], indent: str, width: int | None) -> Iterator[str]:
    """The pieces joined by spaces; where the next would pass ``width``, a new line begins, indented further."""
    line = indent + pieces[0]
    continued = indent + ("//   " if pieces[0].startswith("//") else CONTINUED)
    for piece in pieces[1:]:
        if width is not None and len(line) + 1 + len(piece) > width and line.strip():
            yield line
            line = continued + piece.strip()
        else:
            line += " " + piece
    yield line
