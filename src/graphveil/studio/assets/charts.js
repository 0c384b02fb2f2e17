/** Two kinds of charts, one unit an axis: ranges beside each other (SVG, so that they print and can be taken away) and a curve (uPlot). */

import { el, table } from "./dom.js";
import { behind } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";
/** What a drawing takes from the style of the page, when it leaves the page. */
const STYLES = ["fill", "stroke", "stroke-width", "stroke-linecap", "paint-order", "font-size", "font-weight", "font-family"];
/** Epsilons that an axis names. */
const MARKS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16];
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 40rem)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function draw(name, attributes, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}

/** Round ends and about four steps between them. */
function ticksOf(low, high) {
  const rough = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
}

/** A measure {mean, low, high} as a row of a chart has it: shares times a hundred, others as they are. */
export const band = ({ mean, low, high }, times = 100) => ({ value: times * mean, low: times * low, high: times * high });

/** Ranges beside each other; `ends`: values that the axis holds anyhow. Rows are {name, low, high, value, kind}: a bar, a dot, a class. */
export function ranges({ title, unit, digits = 1, ends = [] }, rows) {
  const spell = (value) => `${value.toFixed(digits)}${unit === "%" ? "%" : ""}`;
  const texts = rows.map((row) => spelled(row, spell));
  const label = `${title}: ${rows.map((row, place) => `${row.name} ${texts[place]}`).join("; ")}`;
  const values = [...ends, ...rows.flatMap((row) => [row.low, row.high, row.value])].filter(Number.isFinite);
  const ticks = ticksOf(Math.min(...values), Math.max(...values));
  let svg = bars(rows, texts, ticks, unit, label);
  narrow.addEventListener("change", () => {
    const next = bars(rows, texts, ticks, unit, label);
    svg.replaceWith(next);
    svg = next;
  });
  const cells = rows.map((row) => [row.name, ...[row.value, row.low, row.high].map((one) => (Number.isFinite(one) ? spell(one) : ""))]);
  const numbers = table(`${title}, in ${unit}`, ["", "#value", "#from", "#to"], cells);
  return el("figure", { class: "chart" }, el("figcaption", {}, title), svg, behind(numbers));
}

function spelled({ value, low, high }, spell) {
  if (value === undefined) return low === high ? spell(low) : `${spell(low)} to ${spell(high)}`;
  return Number.isFinite(low) ? `${spell(value)} (${spell(low)} to ${spell(high)})` : spell(value);
}

/** The drawing: places across are shares of its width, so that it fits every window. */
function bars(rows, texts, ticks, unit, label) {
  const [first, last] = [ticks[0], ticks.at(-1)];
  const across = (value) => `${(3 + (94 * (value - first)) / (last - first)).toFixed(2)}%`;
  // Where there is no room beside each other, a value stands below its bar.
  const step = narrow.matches ? 66 : 46;
  const height = rows.length * step + 46;
  const svg = draw("svg", { class: "ranges", width: "100%", height, role: "img", "aria-label": label });
  for (const tick of ticks) {
    const kind = tick === 0 && first < 0 ? "zero" : "grid";
    svg.append(draw("line", { class: kind, x1: across(tick), x2: across(tick), y1: 0, y2: height - 40 }));
    svg.append(draw("text", { class: "tick", x: across(tick), y: height - 24, "text-anchor": "middle" }, String(Number(tick.toPrecision(4)))));
  }
  svg.append(draw("text", { class: "tick", x: "50%", y: height - 6, "text-anchor": "middle" }, unit));
  rows.forEach((row, place) => {
    const y = place * step + 32;
    const kind = row.kind ?? "";
    svg.append(draw("text", { class: `name ${kind}`, x: "0", y: y - 14 }, row.name));
    svg.append(draw("text", { class: "value", x: "100%", y: narrow.matches ? y + 22 : y - 14, "text-anchor": "end" }, texts[place]));
    if (Number.isFinite(row.low)) svg.append(draw("line", { class: `span ${kind}`, x1: across(row.low), x2: across(row.high), y1: y, y2: y }));
    const dot = row.value ?? (row.low === row.high ? row.low : undefined);
    if (Number.isFinite(dot)) svg.append(draw("circle", { class: `dot ${kind}`, cx: across(dot), cy: y, r: 5.5 }));
  });
  return svg;
}

/** A curve over epsilons (`places`); returns the figure, and how to move its mark to another epsilon. */
export function curve({ title, unit, places, values, ends }) {
  const ground = el("div", { class: "live" });
  let at = null;
  let chart = null;
  const axis = (label, size, more = {}) => ({
    label, size, labelSize: 22, stroke: () => colour("--soft"), grid: { stroke: () => colour("--line"), width: 1 },
    ticks: { show: false }, font: "12px system-ui, sans-serif", labelFont: "13px system-ui, sans-serif", ...more,
  });
  const named = {
    splits: (u) => MARKS.filter((_, place) => u.width > 420 || place % 2 === 0),
    values: (_, all) => all.map(String),
    filter: (_, all) => all,
  };
  const marks = (u) => {
    const [x, y] = [u.valToPos(places[at], "x", true), u.valToPos(values[at], "y", true)];
    u.ctx.fillStyle = colour("--care");
    u.ctx.fillRect(x - devicePixelRatio, y, 2 * devicePixelRatio, u.bbox.top + u.bbox.height - y);
    u.ctx.beginPath();
    u.ctx.arc(x, y, 6 * devicePixelRatio, 0, 7);
    u.ctx.fill();
  };
  const begin = () => {
    chart = new uPlot({
      width: Math.max(220, ground.clientWidth), height: 220, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, distr: 3, range: [places[0], places.at(-1)] }, y: { range: ends } },
      axes: [axis("epsilon: smaller protects more", 30, named), axis(unit, 44)],
      series: [{}, { stroke: () => colour("--accent"), width: 2, points: { show: false } }],
      hooks: { draw: [(u) => { if (at !== null) marks(u); }] },
    }, [places, values], ground);
    dark.addEventListener("change", () => chart.redraw(false));
  };
  new ResizeObserver(() => {
    if (!ground.clientWidth) return;
    if (chart === null) begin();
    else chart.setSize({ width: Math.max(220, ground.clientWidth), height: 220 });
  }).observe(ground);
  const rows = places.map((place, number) => [String(place), String(values[number])]);
  const figure = el("figure", { class: "chart" }, el("figcaption", {}, title), ground, behind(table(title, ["#epsilon", `#${unit}`], rows)));
  return [figure, (place) => { at = places.indexOf(place); chart?.redraw(false); }];
}

/** The text of a drawn chart as a file of its own: what the page's style gives becomes part of it. */
export function standing(svg, width = 900) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  from.forEach((node, place) => {
    const style = getComputedStyle(node);
    for (const name of STYLES) to[place].setAttribute(name, style.getPropertyValue(name));
  });
  const height = Number(svg.getAttribute("height"));
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.prepend(draw("rect", { width: "100%", height: "100%", fill: colour("--page") }));
  return new XMLSerializer().serializeToString(copy);
}

/** The same as a picture of pixels, twice as fine as a screen. */
export async function pixels(svg) {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standing(svg))}`;
  await picture.decode();
  const canvas = el("canvas", { width: 2 * picture.width, height: 2 * picture.height });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
