/** Two kinds of charts, one unit an axis: ranges beside each other, and what is expected at which epsilon. SVG prints, and can be taken away. */

import { el, table } from "./dom.js";
import { behind, short } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";
/** What a drawing takes from the style of the page, when it leaves the page. */
const STYLES = ["fill", "stroke", "stroke-width", "stroke-linecap", "paint-order", "font-size", "font-weight", "font-family"];
/** Epsilons that an axis names. */
const MARKS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16];
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

/** What points in the order of their epsilons say at another one, by a straight line between two; null outside of them. */
export function at(points, epsilon) {
  const place = points.findIndex((one) => one.epsilon >= epsilon);
  const [above, below] = [points[place], points[place - 1] ?? points[place]];
  if (!above || below.epsilon > epsilon) return null;
  const share = above === below ? 0 : Math.log(epsilon / below.epsilon) / Math.log(above.epsilon / below.epsilon);
  const [low, high] = ["low", "high"].map((end) => below[end] + share * (above[end] - below[end]));
  return { epsilon, low, high };
}

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

/**
 * What is expected at which epsilon, on one axis; returns the figure, and how to move its mark to another epsilon.
 * Rows are {name, kind, points}, points {epsilon, low, high, value}: an area, or with `value` dots of finished work.
 */
export function spread({ title, unit, digits = 1, ends = [], places }, rows) {
  const [from, to] = [places[0], places.at(-1)].map(Math.log);
  const share = (epsilon) => 0.03 + (0.94 * (Math.log(epsilon) - from)) / (to - from);
  const across = (epsilon) => `${(100 * Math.min(0.97, Math.max(0.03, share(epsilon)))).toFixed(2)}%`;
  const values = [...ends, ...rows.flatMap((row) => row.points.flatMap(({ low, high }) => [low, high]))];
  const ticks = ticksOf(Math.min(...values), Math.max(...values));
  const up = (value) => 190 - (176 * (value - ticks[0])) / (ticks.at(-1) - ticks[0]);
  const spell = (value) => (value === undefined ? "" : Number(value).toFixed(digits));
  const label = `${title}, in ${unit}: ${rows.map((row) => row.name).join("; ")}`;
  const svg = draw("svg", { class: "ranges", width: "100%", height: 240, role: "img", "aria-label": label });
  // The areas alone are stretched to the width, and end with the axis: words and dots keep their shape.
  const plane = draw("svg", { width: "97%", height: 240, viewBox: "0 0 970 240", preserveAspectRatio: "none" });
  const mark = draw("line", { class: "mark", y1: 14, y2: 190 });
  for (const tick of ticks) svg.append(draw("line", { class: tick === 0 && ticks[0] < 0 ? "zero" : "grid", x1: "3%", x2: "97%", y1: up(tick), y2: up(tick) }));
  svg.append(plane);
  for (const { kind = "", points } of rows) {
    if (points[0]?.value === undefined) {
      const edge = (end) => points.map((point) => `${1000 * share(point.epsilon)},${up(point[end])}`);
      plane.append(draw("polygon", { class: `area ${kind}`, points: [...edge("low"), ...edge("high").reverse()].join(" ") }));
    } else for (const { epsilon, low, high, value } of points) {
      svg.append(draw("line", { class: `span ${kind}`, x1: across(epsilon), x2: across(epsilon), y1: up(low), y2: up(high) }));
      svg.append(draw("circle", { class: `dot ${kind}`, cx: across(epsilon), cy: up(value), r: 5.5 }));
    }
  }
  for (const tick of ticks) svg.append(draw("text", { class: "tick", x: "3%", y: up(tick) - 3 }, String(Number(tick.toPrecision(4)))));
  for (const one of MARKS) svg.append(draw("text", { class: "tick", x: across(one), y: 208, "text-anchor": "middle" }, String(one)));
  svg.append(draw("text", { class: "tick", x: "50%", y: 230, "text-anchor": "middle" }, "epsilon: smaller protects more"));
  const cells = rows.flatMap(({ name, points }) => points.map(({ epsilon, value, low, high }) => [name, String(epsilon), ...[value, low, high].map(spell)]));
  const numbers = table(`${title}, in ${unit}`, ["", "#epsilon", "#value", "#from", "#to"], cells);
  const here = rows.map(() => el("strong", {}));
  const legend = el("ul", { class: "legend" }, rows.map(({ name, kind }, row) => el("li", {}, el("span", { class: `key ${kind ?? ""}` }), name, here[row])));
  const figure = el("figure", { class: "chart" }, el("figcaption", {}, `${title}, in ${unit}`), svg, legend, behind(numbers));
  return [figure, (epsilon) => {
    for (const end of ["x1", "x2"]) mark.setAttribute(end, across(epsilon));
    plane.after(mark);
    rows.forEach(({ points }, row) => {
      const between = points[0].value === undefined && at(points, epsilon);
      here[row].textContent = between ? `: ${spelled(between, spell)} at epsilon ${short(epsilon)}` : "";
    });
  }];
}

/** The text of a drawn chart as a file of its own: what the page's style gives becomes part of it. */
export function standing(svg, title, width = 900) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  from.forEach((node, place) => {
    const style = getComputedStyle(node);
    for (const name of STYLES) to[place].setAttribute(name, style.getPropertyValue(name));
  });
  const height = Number(svg.getAttribute("height"));
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("viewBox", `0 -40 ${width} ${height + 40}`);
  copy.setAttribute("height", height + 40);
  const head = { x: 0, y: -16, fill: colour("--ink"), "font-size": "17px", "font-weight": 650, "font-family": "system-ui, sans-serif" };
  copy.prepend(draw("title", {}, title), draw("desc", {}, svg.getAttribute("aria-label")),
    draw("rect", { y: -40, width: "100%", height: height + 40, fill: colour("--page") }), draw("text", head, title));
  return new XMLSerializer().serializeToString(copy);
}

/** The same as a picture of pixels, twice as fine as a screen. */
export async function pixels(svg, title) {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standing(svg, title))}`;
  await picture.decode();
  const canvas = el("canvas", { width: 2 * picture.width, height: 2 * picture.height });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
