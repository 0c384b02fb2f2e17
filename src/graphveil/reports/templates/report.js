"use strict";
/* Makes a report move. Everything is readable without it: tabs are sections, charts are pictures. */
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const make = (tag, attributes = {}, text = "") => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const shown = new Map(); // section -> what to do when it is first seen: a hidden chart has no width

  /* ---- tabs ---- */
  const sections = all("section[data-tab]");
  const tabs = new Map();

  const select = (section, focus = false) => {
    for (const [one, tab] of tabs) {
      one.hidden = one !== section;
      tab.setAttribute("aria-selected", String(one === section));
      tab.tabIndex = one === section ? 0 : -1;
    }
    if (focus) tabs.get(section).focus();
    for (const act of shown.get(section) ?? []) act();
    shown.delete(section);
  };

  const turn = event => {
    const at = sections.findIndex(section => !section.hidden);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: sections.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(sections[(to + sections.length) % sections.length], true);
  };

  const addTabs = () => {
    const bar = make("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the report" });
    for (const section of sections) {
      const tab = make("button", { type: "button", role: "tab", id: `tab-${section.id}`, "aria-controls": section.id },
        section.dataset.tab);
      section.setAttribute("role", "tabpanel");
      section.setAttribute("aria-labelledby", tab.id);
      tab.addEventListener("click", () => { select(section); history.replaceState(null, "", `#${section.id}`); });
      tabs.set(section, tab);
      bar.append(tab);
    }
    bar.addEventListener("keydown", turn);
    sections[0].before(bar);
    const follow = () => select(sections.find(section => `#${section.id}` === location.hash) ?? sections[0]);
    addEventListener("hashchange", follow);
    return follow;
  };

  const whenSeen = (element, act) => {
    const section = element.closest("section[data-tab]");
    shown.set(section, [...(shown.get(section) ?? []), act]);
  };

  /* ---- tables ---- */
  const valueOf = cell => {
    const text = (cell?.dataset.value ?? cell?.textContent ?? "").trim();
    const number = Number.parseFloat(text.replace(/,/g, ""));
    return Number.isNaN(number) ? text : number;
  };

  const compare = (one, other) =>
    typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other));

  const sortable = table => {
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      const button = make("button", { type: "button", class: "sort" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(one => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const rows = all("tr", table.tBodies[0]);
        rows.sort((a, b) => (falling ? -1 : 1) * compare(valueOf(a.cells[column]), valueOf(b.cells[column])));
        table.tBodies[0].append(...rows);
      });
    });
  };

  /* ---- bars ---- */
  const zoomBars = bars => {
    const rows = all("li[data-low]", bars);
    const numbers = rows.flatMap(row => [Number(row.dataset.low), Number(row.dataset.high)]);
    const from = Math.max(0, Math.floor(Math.min(...numbers) / 5) * 5 - 5);
    const to = Math.min(100, Math.ceil(Math.max(...numbers) / 5) * 5 + 5);
    const button = make("button", { type: "button", "aria-pressed": "false" }, `Zoom to ${from}-${to} per cent`);
    const ticks = all(".ticks span", bars);
    button.addEventListener("click", () => {
      const near = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(near));
      const [low, high] = near ? [from, to] : [0, 100];
      bars.style.setProperty("--from", low);
      bars.style.setProperty("--to", high);
      ticks.forEach((tick, k) => { tick.textContent = String(low + ((high - low) * k) / (ticks.length - 1)); });
    });
    const line = make("div", { class: "tools" });
    line.append(button);
    bars.before(line);
  };

  /* ---- charts ---- */
  const isPower = place => Math.abs(Math.log10(place) - Math.round(Math.log10(place))) < 1e-9;

  const powers = (_, places) => places.map(place => (isPower(place) ? place : null));

  const axis = (label, log, size) => ({
    label, stroke: () => colour("--soft"), grid: { stroke: () => colour("--line"), width: 1, ...(log ? { filter: powers } : {}) },
    ticks: { show: false }, size, labelSize: 20, font: "12px system-ui, sans-serif",
    labelFont: "13px system-ui, sans-serif",
    ...(log ? { filter: powers } : {}),
  });

  const read = value => (value === null || value === undefined ? "" : String(Number(value.toPrecision(4))));

  const series = line => ({
    stroke: line.colour, width: line.faint ? 1 : 2, alpha: line.faint ? 0.4 : 1, dash: line.dashed ? [4, 4] : undefined,
    spanGaps: true, points: { show: false },
  });

  /* What stands under the pointer, in words; further repeats are drawn but not listed. */
  const legendOf = data => {
    const list = make("ul", { class: "legend", "aria-live": "polite" });
    const place = list.appendChild(make("li", {}, data.x));
    const named = [...data.lines.entries()].filter(([, line]) => !line.faint).map(([number, line]) => {
      const entry = list.appendChild(make("li"));
      entry.append(make("span", { class: line.dashed ? "dashed key" : "key", style: `--key:${line.colour}` }), line.name, " ", make("b"));
      return [number, entry.querySelector("b")];
    });
    const tell = at => {
      place.textContent = at === null || at === undefined ? data.x : `${data.x} ${read(data.places[at])}`;
      for (const [number, shown] of named) shown.textContent = read(data.lines[number].values[at]);
    };
    return [list, tell];
  };

  const addChart = figure => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const place = make("div", { class: "live", tabindex: "0", role: "group", "aria-label":
      `${figure.dataset.title}: arrow keys read the values, plus and minus zoom, 0 shows everything` });
    const [legend, tell] = legendOf(data);
    const width = () => Math.max(240, Math.floor(figure.clientWidth));
    const height = 270;
    const scale = data.log ? { distr: 3 } : {};
    const chart = new uPlot({
      width: width(), height, axes: [axis(data.x, data.log, 32), axis(data.y, data.log, 46)],
      scales: { x: { time: false, ...scale }, y: scale },
      series: [{}, ...data.lines.map(series)], legend: { show: false },
      cursor: { drag: { x: true, y: true, uni: 30 } }, hooks: { setCursor: [u => tell(u.cursor.idx)] },
    }, [data.places, ...data.lines.map(line => line.values)], place);
    const [first, last] = [data.places[0], data.places.at(-1)];
    const whole = () => chart.setData(chart.data, true);
    const zoom = factor => {
      const { min, max } = chart.scales.x;
      const middle = chart.cursor.idx === null || chart.cursor.idx === undefined ? (min + max) / 2 : data.places[chart.cursor.idx];
      const half = ((max - min) / 2) * factor;
      chart.setScale("x", { min: Math.max(first, middle - half), max: Math.min(last, middle + half) });
    };
    const move = step => {
      const at = Math.min(data.places.length - 1, Math.max(0, (chart.cursor.idx ?? (step > 0 ? -1 : data.places.length)) + step));
      chart.setCursor({ left: chart.valToPos(data.places[at], "x"), top: 10 });
    };
    const keys = { ArrowRight: () => move(1), ArrowLeft: () => move(-1), "+": () => zoom(0.5), "-": () => zoom(2), "0": whole };
    place.addEventListener("keydown", event => {
      if (!(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
    const tools = make("div", { class: "tools" });
    for (const [name, act] of [["Zoom in", () => zoom(0.5)], ["Zoom out", () => zoom(2)], ["Show all", whole]]) {
      const button = make("button", { type: "button" }, name);
      button.setAttribute("aria-label", `${name}: ${figure.dataset.title}`);
      button.addEventListener("click", act);
      tools.append(button);
    }
    figure.classList.add("alive");
    figure.prepend(tools, place, legend);
    new ResizeObserver(() => { if (figure.clientWidth) chart.setSize({ width: width(), height }); }).observe(figure);
    dark.addEventListener("change", () => chart.redraw(false));
  };

  /* ---- the graph ---- */
  const shapes = picture => ({
    ...(picture.labels.length ? { "right or wrong": node => (picture.labels[node] < 0 ? "unknown"
      : picture.labels[node] === picture.predicted[node] ? "right" : "wrong") } : {}),
    ...(picture.labels.length ? { "true class": node => picture.classes[picture.labels[node]] ?? "unknown" } : {}),
    ...(picture.covered.length ? { "what is protected": node => picture.covered[node] } : {}),
    ...(picture.parts.length ? { "part in the run": node => picture.parts[node] } : {}),
  });
  const fixed = { right: "#56b4e9", wrong: "#d55e00", unknown: "#8a9099", trains: "#0072b2", validates: "#e69f00", tests: "#009e73" };

  const describe = (picture, node) => {
    const words = [picture.names.length ? `node ${picture.names[node]}` : `a node`, `predicted ${picture.classes[picture.predicted[node]]}`];
    if (picture.labels.length && picture.labels[node] >= 0) words.push(`true class ${picture.classes[picture.labels[node]]}`);
    if (picture.parts.length) words.push(picture.parts[node]);
    if (picture.covered.length) words.push(`protected: ${picture.covered[node]}`);
    return words;
  };

  const addGraph = figure => {
    const picture = JSON.parse(figure.querySelector("script").textContent);
    const place = make("div", { class: "live graph", tabindex: "0", role: "group", "aria-label":
      "Graph: arrow keys go from node to node, plus and minus zoom, 0 shows everything" });
    const told = make("p", { class: "told", "aria-live": "polite" }, "Point at a node, or use the arrow keys.");
    const tools = make("div", { class: "tools" });
    figure.classList.add("alive");
    figure.prepend(tools, place, told);
    const many = picture.edges.reduce((sum, kind) => sum + kind.pairs.length, 0) > 2500;
    const colourOf = node => picture.colours[picture.predicted[node]];
    const cy = cytoscape({
      container: place, layout: { name: "preset" }, minZoom: 0.02, maxZoom: 20, userZoomingEnabled: false, userPanningEnabled: false,
      hideEdgesOnViewport: many, textureOnViewport: many, autoungrabify: true, boxSelectionEnabled: false,
      elements: [
        ...picture.places.map(([x, y], node) => ({ data: { id: `n${node}`, node, colour: colourOf(node) }, position: { x, y },
          classes: picture.labels.length && picture.labels[node] >= 0 && picture.labels[node] !== picture.predicted[node] ? "wrong" : "" })),
        ...picture.edges.flatMap((kind, number) => kind.pairs.map(([a, b], k) => (
          { data: { id: `e${number}-${k}`, source: `n${a}`, target: `n${b}`, colour: kind.colour }, classes: `k${number}` }))),
      ],
      style: [
        { selector: "node", style: { width: 10, height: 10, "background-color": "data(colour)" } },
        { selector: ".wrong", style: { "background-opacity": 0, "border-width": 2.5, "border-color": "data(colour)" } },
        { selector: "edge", style: { width: many ? 0.6 : 1, "line-color": "data(colour)", opacity: many ? 0.35 : 0.55, "curve-style": "haystack" } },
        { selector: ".off", style: { display: "none" } },
        { selector: ".faded", style: { opacity: 0.12 } },
        { selector: ".here", style: { "border-width": 3, "border-color": "#e69f00", width: 16, height: 16 } },
      ],
    });
    cy.fit(undefined, 12);
    /* Until it is entered, the page scrolls over it. */
    place.addEventListener("focus", () => { cy.userZoomingEnabled(true); cy.userPanningEnabled(true); });
    place.addEventListener("blur", () => { cy.userZoomingEnabled(false); cy.userPanningEnabled(false); });
    place.addEventListener("pointerdown", () => place.focus({ preventScroll: true }));
    let at = -1;
    const tell = node => {
      at = node;
      cy.elements().removeClass("here faded");
      const one = cy.getElementById(`n${node}`);
      cy.elements().not(one.closedNeighborhood()).addClass("faded");
      one.addClass("here");
      const near = one.neighborhood("node").length;
      told.textContent = [...describe(picture, node), `${near} ${near === 1 ? "neighbour" : "neighbours"} drawn`].join(", ");
    };
    const clear = () => { cy.elements().removeClass("here faded"); };
    cy.on("mouseover", "node", event => tell(event.target.data("node")));
    cy.on("tap", "node", event => tell(event.target.data("node")));
    cy.on("mouseout", "node", clear);
    cy.on("tap", event => { if (event.target === cy) clear(); });
    const middle = () => ({ x: place.clientWidth / 2, y: place.clientHeight / 2 });
    const zoom = factor => cy.zoom({ level: cy.zoom() * factor, renderedPosition: middle() });
    const whole = () => { clear(); cy.fit(undefined, 12); };
    const step = by => tell((at + by + picture.places.length) % picture.places.length);
    const keys = { ArrowRight: () => step(1), ArrowLeft: () => step(-1), "+": () => zoom(1.4), "-": () => zoom(1 / 1.4), "0": whole };
    place.addEventListener("keydown", event => {
      if (!(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
    for (const [name, act] of [["Zoom in", () => zoom(1.4)], ["Zoom out", () => zoom(1 / 1.4)], ["Show all", whole]]) {
      const button = make("button", { type: "button", "aria-label": `${name}: graph` }, name);
      button.addEventListener("click", act);
      tools.append(button);
    }
    const palette = picture.colours.length > 1 ? picture.colours : ["#0072b2", "#d55e00"];
    const kinds = shapes(picture);
    const legend = figure.querySelector(".nodes");
    const first = [...legend.cloneNode(true).childNodes];
    const recolour = word => {
      const meaning = kinds[word];
      const names = meaning ? [...new Set(picture.places.map((_, node) => meaning(node)))].sort() : [];
      const shade = name => fixed[name] ?? palette[(picture.classes.includes(name) ? picture.classes.indexOf(name) : names.indexOf(name)) % palette.length];
      cy.batch(() => cy.nodes().forEach(one => {
        const node = one.data("node");
        one.data("colour", meaning ? shade(meaning(node)) : colourOf(node));
      }));
      if (!meaning) { legend.replaceChildren(...first); return; }
      legend.replaceChildren(...names.map(name => {
        const entry = make("li");
        const count = picture.places.filter((_, node) => meaning(node) === name).length;
        entry.append(make("span", { class: "key dot", style: `--key:${shade(name)}` }), `${name} (${count.toLocaleString("en")})`);
        return entry;
      }));
    };
    if (Object.keys(kinds).length) {
      const label = make("label", {}, "Colours: ");
      const choice = label.appendChild(make("select"));
      for (const word of ["predicted class", ...Object.keys(kinds)]) choice.append(make("option", {}, word));
      choice.addEventListener("change", () => recolour(choice.value));
      tools.append(label);
    }
    picture.edges.forEach((kind, number) => {
      const label = make("label");
      const box = make("input", { type: "checkbox", checked: "" });
      box.addEventListener("change", () => cy.edges(`.k${number}`).toggleClass("off", !box.checked));
      label.append(box, ` ${kind.word}`);
      tools.append(label);
    });
    if (picture.names.length) {
      const label = make("label", {}, "Find ");
      const field = label.appendChild(make("input", { type: "search", size: "10" }));
      field.addEventListener("change", () => {
        const node = picture.names.indexOf(field.value.trim());
        if (node < 0) { told.textContent = `No node drawn is called ${field.value}.`; return; }
        tell(node);
        cy.animate({ center: { eles: cy.getElementById(`n${node}`) }, zoom: 3, duration: 0 });
      });
      tools.append(label);
    }
    new ResizeObserver(() => { if (place.clientWidth) cy.resize(); }).observe(place);
  };

  const follow = addTabs();
  all("table.sortable").forEach(sortable);
  all(".bars").forEach(zoomBars);
  all("figure.chart").forEach(figure => whenSeen(figure, () => addChart(figure)));
  all("figure.net").forEach(figure => whenSeen(figure, () => addGraph(figure)));
  follow();
})();
