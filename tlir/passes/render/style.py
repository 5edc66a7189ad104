"""How the drawings look: the kinds of nodes that are told apart, and one style sheet for SVG and HTML."""

from __future__ import annotations

from tlir.ir.graph import Node
from tlir.ir.ops import OPERATIONS

KINDS = {
    "input": "input",
    "constant": "constant",
    "data": "conversion",
    "elementwise": "elementwise",
    "shape": "shape",
    "sum": "reduction, contraction",
}
"""The kinds of nodes that are told apart by colour, and what the legend calls them."""

_FAMILIES = {"shape": "shape", "reduction": "sum", "contraction": "sum", "data": "data"}

# fill and outline of each kind, on light and on dark ground
_LIGHT = {
    "input": ("#d9f2e3", "#2e8b57"),
    "constant": ("#eceff3", "#7a8699"),
    "data": ("#fff1cc", "#b8860b"),
    "elementwise": ("#dde9fb", "#3b6fc4"),
    "shape": ("#eee3fa", "#7e57b8"),
    "sum": ("#fde0dc", "#c4503b"),
}
_DARK = {
    "input": ("#173a28", "#5fc48d"),
    "constant": ("#2a303a", "#8b97aa"),
    "data": ("#3d3110", "#d9b04a"),
    "elementwise": ("#1b2f50", "#7aa7ee"),
    "shape": ("#33244a", "#b794ea"),
    "sum": ("#48231c", "#ee8a76"),
}


def kind_of(node: Node) -> str:
    """The key in ``KINDS`` of a node."""
    if node.op in ("input", "constant"):
        return node.op
    operation = OPERATIONS.get(node.op)
    return _FAMILIES.get(operation.family, "elementwise") if operation else "elementwise"


def _variables(ground: str, text: str, faint: str, line: str, mark: str, kinds: dict[str, tuple[str, str]]) -> str:
    shared = f"--ground:{ground};--text:{text};--faint:{faint};--line:{line};--mark:{mark};"
    return shared + "".join(f"--{kind}:{fill};--{kind}-line:{line};" for kind, (fill, line) in kinds.items())


COLOURS = (
    ":root{color-scheme:light dark;"
    + _variables("#ffffff", "#1c2430", "#5b6675", "#9aa5b4", "#d6336c", _LIGHT)
    + "}\n@media (prefers-color-scheme:dark){:root{"
    + _variables("#14181f", "#e6eaf0", "#9aa5b4", "#5b6675", "#ff6b9d", _DARK)
    + "}}\n"
)

MONOSPACE = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

DRAWING = (
    f"svg.graph{{background:var(--ground);font:12px {MONOSPACE}}}\n"
    ".graph text{fill:var(--text)}.graph .o{font-weight:bold}.graph .t,.graph .c{fill:var(--faint)}\n"
    ".graph .e{fill:none;stroke:var(--line);stroke-width:1.2}.graph #arrow path{fill:var(--line)}\n"
    ".graph .n rect{stroke-width:1.2}.graph .out rect{stroke-width:3}\n"
    + "".join(f".graph .{kind} rect{{fill:var(--{kind});stroke:var(--{kind}-line)}}\n" for kind in KINDS)
)
