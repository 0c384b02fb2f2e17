/** A run's graph: who is predicted what, and where that is wrong. */

import { el, note, points, table } from "./dom.js";
import { acts, behind, button, p } from "./parts.js";

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a9099", "#b8a800", "#7a3b9d", "#5b3a1e", "#7fc97f", "#f781bf"];

/** Load cytoscape when it is needed for the first time: most visits never draw a graph. */
let loaded = null;
function library() {
  loaded ??= new Promise((resolve, reject) => {
    const script = el("script", { src: "assets/cytoscape.min.js", load: () => resolve(), error: () => reject(new Error("no cytoscape")) });
    document.head.append(script);
  });
  return loaded;
}

const colourOf = (label) => COLOURS[label % COLOURS.length];
const words = (picture, node) =>
  [
    `predicted ${picture.classes[node.predicted]}`, node.label === null ? "" : `true class ${picture.classes[node.label] ?? "unknown"}`,
    node.right === null ? "" : node.right ? "right" : "wrong", node.part ?? "",
  ].filter(Boolean).join(", ");

export function network(picture) {
  if (!picture.nodes.length) return note("", "There is nothing to draw.", picture.left_out.map((line) => p(line)));
  const label = "Graph: arrow keys go from person to person, plus and minus zoom, 0 shows everything";
  const place = el("div", { class: "live graph", tabindex: "0", role: "group", "aria-label": label });
  const caption = el("p", { "aria-live": "polite" }, "Point at somebody, or use the arrow keys.");
  const keys = {};
  const tool = (name, key) => button(name, () => keys[key]?.(), "small");
  library().then(() => Object.assign(keys, live(picture, place, (node) => { caption.textContent = words(picture, node); })));
  place.addEventListener("keydown", (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  const rows = picture.classes.map((name, label) => {
    const all = picture.nodes.filter((node) => node.predicted === label);
    const judged = all.filter((node) => node.right !== null);
    return [name, String(all.length), judged.length ? String(judged.filter((node) => !node.right).length) : "not shown"];
  });
  const errors = picture.nodes.some((node) => node.right === false) ? " A ring is a wrong prediction." : "";
  return [
    p(`${picture.nodes.length.toLocaleString("en")} of ${picture.total.toLocaleString("en")} people are drawn; a colour is a predicted class.${errors}`),
    picture.left_out.length ? points(picture.left_out) : [],
    acts(tool("Zoom in", "+"), tool("Zoom out", "-"), tool("Show all", "0")), place, caption, el("ul", { class: "legend" }, picture.classes.slice(0, 12).map(entry)),
    behind(table("Predictions among those drawn", ["class", "#predicted", "#of these wrong"], rows)),
  ];
}

const entry = (name, label) => {
  const mark = el("span", { class: "key" });
  mark.style.background = colourOf(label);
  return el("li", {}, mark, name);
};

function live(picture, place, tell) {
  const many = picture.edges.reduce((sum, kind) => sum + kind.pairs.length, 0) > 2500;
  const nodes = picture.nodes.map(({ x, y, predicted, right }, number) => (
    { data: { id: `n${number}`, number, colour: colourOf(predicted) }, position: { x, y }, classes: right === false ? "wrong" : "" }
  ));
  const edges = picture.edges.flatMap((kind, set) => kind.pairs.map(([a, b], number) => ({ data: { id: `e${set}-${number}`, source: `n${a}`, target: `n${b}` } })));
  const cy = cytoscape({
    container: place, layout: { name: "preset" }, elements: [...nodes, ...edges], minZoom: 0.02, maxZoom: 20, userZoomingEnabled: false, userPanningEnabled: false,
    autoungrabify: true, boxSelectionEnabled: false, hideEdgesOnViewport: many, textureOnViewport: many,
    style: [
      { selector: "node", style: { width: 10, height: 10, "background-color": "data(colour)" } },
      { selector: ".wrong", style: { "background-opacity": 0, "border-width": 2.5, "border-color": "data(colour)" } },
      { selector: "edge", style: { width: 0.8, "line-color": "#8a9099", opacity: many ? 0.3 : 0.5, "curve-style": "haystack" } },
      { selector: ".here", style: { "border-width": 3, "border-color": "#e69f00", width: 16, height: 16 } },
    ],
  });
  cy.fit(undefined, 12);
  place.addEventListener("focus", () => { cy.userZoomingEnabled(true); cy.userPanningEnabled(true); });
  place.addEventListener("blur", () => { cy.userZoomingEnabled(false); cy.userPanningEnabled(false); });
  new ResizeObserver(() => {
    if (!place.clientWidth) return;
    cy.resize();
    cy.fit(undefined, 12);
  }).observe(place);
  let at = -1;
  const show = (number) => {
    at = (number + nodes.length) % nodes.length;
    cy.nodes(".here").removeClass("here");
    cy.getElementById(`n${at}`).addClass("here");
    tell(picture.nodes[at]);
  };
  cy.on("mouseover tap", "node", (event) => show(event.target.data("number")));
  const zoom = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: place.clientWidth / 2, y: place.clientHeight / 2 } });
  return { ArrowRight: () => show(at + 1), ArrowLeft: () => show(at - 1), "+": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: () => cy.fit(undefined, 12) };
}
