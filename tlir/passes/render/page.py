"""The style sheet and the script of the HTML page, fixed texts that hold nothing of an artifact."""

from __future__ import annotations

from tlir.passes.render.style import COLOURS, DRAWING, KINDS, MONOSPACE

STYLE = (
    COLOURS
    + DRAWING
    + f"""
*{{box-sizing:border-box}}
html,body{{margin:0;height:100%}}
body{{display:flex;flex-direction:column;background:var(--ground);color:var(--text);
 font:14px/1.4 system-ui,sans-serif}}
header{{padding:10px 16px 6px}}
h1{{margin:0;font-size:18px;overflow-wrap:anywhere}}
header p{{margin:2px 0 0;color:var(--faint);overflow-wrap:anywhere}}
main{{flex:1;min-height:0;display:grid;grid-template-columns:minmax(0,5fr) minmax(0,6fr);
 border-top:1px solid var(--line)}}
section{{display:flex;flex-direction:column;min-width:0;min-height:0}}
#nodes{{border-left:1px solid var(--line)}}
.bar{{display:flex;flex-wrap:wrap;gap:6px;align-items:center;padding:8px 12px;
 border-bottom:1px solid var(--line)}}
.pane{{flex:1;overflow:auto;min-height:0}}
#drawing .pane{{padding:4px}}
#drawing svg{{display:block;margin:0 auto}}
button,input,select{{font:inherit;color:inherit;background:var(--ground);border:1px solid var(--line);
 border-radius:6px;padding:4px 10px}}
button{{cursor:pointer}}
#filter{{flex:1;min-width:140px}}
#count{{color:var(--faint);font-size:12px}}
.legend{{display:flex;flex-wrap:wrap;gap:2px 12px;list-style:none;margin:0;padding:0;
 font-size:12px;color:var(--faint)}}
.legend i{{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:5px;vertical-align:-1px;
 border:1px solid}}
{"".join(f".legend .{kind} i{{background:var(--{kind});border-color:var(--{kind}-line)}}" for kind in KINDS)}
#details{{margin:0;padding:8px 12px;border-top:1px solid var(--line);max-height:30%;overflow:auto;
 font:12px/1.5 {MONOSPACE};white-space:pre-wrap;overflow-wrap:anywhere}}
table{{border-collapse:collapse;width:100%;font:12px/1.45 {MONOSPACE}}}
th{{position:sticky;top:0;background:var(--ground);text-align:left;padding:2px}}
th button{{border:0;padding:4px 6px;font-weight:bold;white-space:nowrap}}
th[aria-sort=ascending] button::after{{content:" ▲"}}
th[aria-sort=descending] button::after{{content:" ▼"}}
td{{padding:3px 8px;vertical-align:top;border-top:1px solid color-mix(in srgb,var(--line) 35%,transparent);
 overflow-wrap:anywhere;min-width:5ch}}
td:nth-child(1),td:nth-child(3){{white-space:nowrap}}
td:nth-child(2),td:nth-child(5){{min-width:24ch}}
td:nth-child(4),td:nth-child(6){{min-width:15ch}}
td:nth-child(6){{color:var(--faint)}}
tbody tr{{cursor:pointer}}
tbody tr:hover{{background:color-mix(in srgb,var(--line) 18%,transparent)}}
tr.on{{background:color-mix(in srgb,var(--mark) 18%,transparent)!important}}
.graph .n{{cursor:pointer}}
.graph .on rect{{stroke:var(--mark);stroke-width:3}}
.graph .near rect{{stroke:var(--mark);stroke-width:2}}
.graph .e.on{{stroke:var(--mark);stroke-width:2}}
#sort{{display:none}}
@media (max-width:1000px){{
 html,body{{height:auto}}
 main{{display:block}}
 #nodes{{border-left:0;border-top:1px solid var(--line)}}
 #drawing .pane{{max-height:65vh}}
 #sort{{display:block}}
 .pane table,.pane tbody,.pane td{{display:block}}
 thead{{display:none}}
 #nodes tr{{display:flex;flex-wrap:wrap;gap:0 10px;padding:8px 12px;
  border-top:1px solid color-mix(in srgb,var(--line) 35%,transparent)}}
 #nodes tr[hidden]{{display:none}}
 #nodes td{{border:0;padding:0;min-width:0;white-space:normal}}
 td:empty{{display:none!important}}
 td:nth-child(1)::before{{content:"%"}}
 td:nth-child(2){{font-weight:bold}}
 td:nth-child(5)::before{{content:"{{"}}
 td:nth-child(5)::after{{content:"}}"}}
 td:nth-child(6){{flex-basis:100%}}
}}
"""
)

SCRIPT = """
"use strict";
const find = (query) => document.querySelector(query);
const svg = find("svg.graph"), pane = svg.parentElement, body = find("tbody");
const rows = Array.from(body.rows), paths = Array.from(svg.querySelectorAll("path.e"));
const natural = svg.viewBox.baseVal.width, tall = svg.viewBox.baseVal.height;
let scale = 1, column = 0, direction = 1;

function zoom(value) {
  scale = Math.min(4, Math.max(0.02, value));
  svg.setAttribute("width", natural * scale);
  svg.setAttribute("height", tall * scale);
}
const fitting = () => (pane.clientWidth - 10) / natural;
find("#fit").onclick = () => zoom(Math.min(fitting(), (pane.clientHeight - 10) / tall));
find("#full").onclick = () => zoom(1);
find("#smaller").onclick = () => zoom(scale / 1.25);
find("#larger").onclick = () => zoom(scale * 1.25);
zoom(Math.max(0.6, Math.min(1, fitting())));
const first = svg.querySelector(".n")?.getBoundingClientRect();
if (first) pane.scrollLeft = first.left + first.width / 2 - pane.getBoundingClientRect().left - pane.clientWidth / 2;

function count() {
  const shown = rows.filter((row) => !row.hidden).length;
  find("#count").textContent = shown === rows.length ? `${shown} nodes` : `${shown} of ${rows.length} nodes`;
}
function filter() {
  const words = find("#filter").value.toLowerCase().split(/\\s+/).filter(Boolean);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  count();
}
find("#filter").oninput = filter;

function sort(key, order) {
  column = key;
  direction = order;
  const texts = new Map(rows.map((row) => [row, row.cells[key].textContent]));
  const compare = new Intl.Collator("en", {numeric: true}).compare;
  rows.sort((a, b) => order * compare(texts.get(a), texts.get(b)));
  body.append(...rows);
  document.querySelectorAll("th").forEach((th, k) => {
    if (k === key) th.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
    else th.removeAttribute("aria-sort");
  });
  find("#sort").value = key;
}
document.querySelectorAll("th button").forEach((button) => {
  const key = Number(button.dataset.k);
  button.onclick = () => sort(key, key === column ? -direction : 1);
});
find("#sort").onchange = (event) => sort(Number(event.target.value), 1);

function select(id, move) {
  document.querySelectorAll(".on,.near").forEach((item) => item.classList.remove("on", "near"));
  const row = document.getElementById("r" + id), node = document.getElementById("n" + id);
  for (const path of paths) {
    if (path.dataset.s === id || path.dataset.t === id) {
      path.classList.add("on");
      for (const end of [path.dataset.s, path.dataset.t]) {
        if (end !== undefined && end !== id) document.getElementById("n" + end)?.classList.add("near");
      }
    }
  }
  row?.classList.add("on");
  node?.classList.add("on");
  if (row) {
    const [key, op, type, name, attributes, source] = Array.from(row.cells, (cell) => cell.textContent);
    const users = paths.filter((path) => path.dataset.s === id && path.dataset.t).map((path) => "%" + path.dataset.t);
    find("#details").textContent = [
      `%${key}: ${type} = ${op}`,
      name && `name: ${name}`,
      attributes,
      source && `source: ${source}`,
      users.length ? `used by ${users.join(", ")}` : "",
    ].filter(Boolean).join("\\n");
  }
  if (move === "row" && row) row.scrollIntoView({block: "nearest"});
  if (move === "node" && node) node.scrollIntoView({block: "center", inline: "center"});
}
svg.addEventListener("click", (event) => {
  const node = event.target.closest(".n");
  if (node) select(node.id.slice(1), matchMedia("(max-width:1000px)").matches ? "" : "row");
});
body.addEventListener("click", (event) => {
  const row = event.target.closest("tr");
  if (row) select(row.id.slice(1), "node");
});
sort(0, 1);
count();
"""
