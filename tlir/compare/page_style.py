"""The style sheet and the script of the page about comparisons: fixed texts that hold nothing of an artifact."""

from __future__ import annotations

from tlir.passes.render.style import COLOURS, DRAWING, MONOSPACE

ERRORS = {
    "same": "identical",
    "low": "rounding, up to 2 ulps",
    "mid": "up to 64 ulps",
    "high": "more than 64 ulps",
    "open": "undecided",
    "bug": "cannot be explained",
    "none": "not compared",
}
"""The classes by which nodes are coloured, and what the legend calls them."""

_LIGHT = {
    "same": ("#dff3e4", "#2e8b57"),
    "low": ("#eef6cf", "#7b9a1f"),
    "mid": ("#fff0b8", "#b8860b"),
    "high": ("#ffdcae", "#c46f14"),
    "open": ("#e7dcfa", "#7e57b8"),
    "bug": ("#ff9d94", "#b3180c"),
    "none": ("#f1f3f6", "#9aa5b4"),
}
_DARK = {
    "same": ("#173a28", "#5fc48d"),
    "low": ("#2f3a10", "#a9c653"),
    "mid": ("#463808", "#e0b83f"),
    "high": ("#52310a", "#f0a04b"),
    "open": ("#33244a", "#b794ea"),
    "bug": ("#7c1a12", "#ff8a7e"),
    "none": ("#232a34", "#5b6675"),
}


def _variables(colours: dict[str, tuple[str, str]]) -> str:
    return "".join(f"--e-{name}:{fill};--e-{name}-line:{line};" for name, (fill, line) in colours.items())


STYLE = (
    COLOURS
    + DRAWING
    + f":root{{{_variables(_LIGHT)}}}\n@media (prefers-color-scheme:dark){{:root{{{_variables(_DARK)}}}}}\n"
    + "".join(
        f".graph .n.e-{name} rect,.legend .e-{name} i{{fill:var(--e-{name});stroke:var(--e-{name}-line);"
        f"background:var(--e-{name});border-color:var(--e-{name}-line)}}\n"
        f"td.e-{name},.verdict.e-{name}{{background:var(--e-{name})}}\n"
        for name in ERRORS
    )
    + f"""
*{{box-sizing:border-box}}
body{{margin:0 auto;max-width:1500px;padding:0 20px 40px;background:var(--ground);color:var(--text);
 font:15px/1.5 system-ui,sans-serif}}
h1{{font-size:22px;margin:18px 0 4px;overflow-wrap:anywhere}}
h2{{font-size:18px;margin:34px 0 4px;padding-top:14px;border-top:1px solid var(--line);overflow-wrap:anywhere}}
h3{{font-size:15px;margin:22px 0 6px;overflow-wrap:anywhere}}
p{{margin:4px 0;overflow-wrap:anywhere}}
a{{color:inherit}}
.faint{{color:var(--faint)}}
.verdict{{display:inline-block;border-radius:6px;padding:1px 9px;font-weight:600}}
.suspect{{border:1px solid var(--e-bug-line);border-left-width:6px;border-radius:8px;padding:8px 16px 12px;
 margin:14px 0}}
.suspect h3{{margin:2px 0 4px}}
.scroll{{overflow-x:auto;max-width:100%;background:
 linear-gradient(to right,var(--ground) 40%,transparent) left/32px 100% no-repeat local,
 linear-gradient(to left,var(--ground) 40%,transparent) right/32px 100% no-repeat local,
 linear-gradient(to right,var(--line),transparent) left/9px 100% no-repeat scroll,
 linear-gradient(to left,var(--line),transparent) right/9px 100% no-repeat scroll}}
table{{border-collapse:collapse;font:13px/1.45 {MONOSPACE}}}
th{{text-align:left;vertical-align:bottom;padding:4px 14px 4px 6px;border-bottom:1px solid var(--line)}}
th button{{font:inherit;font-weight:bold;color:inherit;background:none;border:0;padding:0;cursor:pointer;
 text-align:left;white-space:nowrap}}
th button::after{{content:" ↕";font-weight:normal;opacity:.35}}
th[aria-sort=ascending] button::after{{content:" ▲";opacity:1}}
th[aria-sort=descending] button::after{{content:" ▼";opacity:1}}
td{{padding:3px 14px 3px 6px;vertical-align:top;
 border-bottom:1px solid color-mix(in srgb,var(--line) 35%,transparent)}}
td.r,th.r{{text-align:right;white-space:nowrap}}
td.told{{min-width:12em}}
tr.mark td{{font-weight:bold}}
tr:target td,tr:target{{outline:2px solid var(--mark)}}
.nodes{{max-height:70vh;overflow:auto}}
.nodes thead th{{position:sticky;top:0;background:var(--ground)}}
.drawing{{overflow:auto;max-height:70vh;border:1px solid var(--line);border-radius:8px;padding:6px}}
.drawing svg{{display:block;margin:0 auto;max-width:none}}
.graph .suspect-node rect{{stroke-width:4}}
.legend{{display:flex;flex-wrap:wrap;gap:2px 14px;list-style:none;margin:6px 0;padding:0;font-size:13px}}
.legend i{{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:5px;vertical-align:-1px;
 border:1px solid}}
.histograms{{display:flex;flex-wrap:wrap;gap:8px 28px}}
figure{{margin:0}}
figcaption{{font-size:13px;color:var(--faint);overflow-wrap:anywhere}}
svg.bars{{font:12px {MONOSPACE};display:block;max-width:100%}}
svg.bars text{{fill:var(--text)}}
svg.bars rect.same{{fill:var(--e-same-line)}}
svg.bars rect.low{{fill:var(--e-low-line)}}
svg.bars rect.mid{{fill:var(--e-mid-line)}}
svg.bars rect.high{{fill:var(--e-high-line)}}
@media (max-width:700px){{body{{padding:0 10px 30px;font-size:14px}}table{{font-size:12px}}
 td,th{{padding-right:10px}}}}
"""
)

SCRIPT = """
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
  const compare = new Intl.Collator("en", {numeric: true}).compare;
  const key = (row, k) => row.cells[k].dataset.v ?? row.cells[k].textContent;
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const order = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      const value = (row) => key(row, k), numbers = head.classList.contains("r");
      const rows = Array.from(body.rows);
      rows.sort((a, b) => order * (numbers ? Number(value(a)) - Number(value(b)) : compare(value(a), value(b))));
      body.append(...rows);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
    };
  });
}
for (const node of document.querySelectorAll(".drawing .suspect-node")) {
  const pane = node.closest(".drawing"), place = node.getBoundingClientRect(), frame = pane.getBoundingClientRect();
  pane.scrollTop += place.top + place.height / 2 - frame.top - pane.clientHeight / 2;
  pane.scrollLeft += place.left + place.width / 2 - frame.left - pane.clientWidth / 2;
}
"""
