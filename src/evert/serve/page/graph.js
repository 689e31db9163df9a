// The dataflow as a graph: topics, the views that read them, the views on top; it moves where data flows.

import { el, keyed, set, svg } from "./dom.js";
import { clock, compact, list, perSecond, plural, seconds } from "./format.js";
import { layered, listed } from "./layers.js";
import { sign, topicLink, viewLink } from "./parts.js";
import { flows, rate, readsOf, state } from "./state.js";

const HEIGHT = 66;
const NARROW = 640;

function topicTexts(topic) {
  const flow = rate(topic.name);
  const last = topic.watermark
    ? `watermark ${clock(Date.parse(topic.watermark))}`
    : `${plural(topic.rows, "row")} kept`;
  const late = topic.late ? `${compact(topic.late)} late` : "";
  return {
    kind: topic.kind,
    figure: perSecond(flow),
    note: topic.kind === "table" ? plural(topic.rows, "row") : last,
    aside: late,
  };
}

function viewTexts(view) {
  const behind = view.lag_commits ? `${seconds(view.lag_seconds ?? 0)} behind` : "up to date";
  const left = view.lag_events ? `${compact(view.lag_events)} events to go` : "nearly there";
  const note =
    view.state === "live" ? behind : view.state === "building" ? left : `at position ${compact(view.position)}`;
  const aside = view.emit === "changes" && view.corrections ? `${compact(view.corrections)} corrected` : "";
  return {
    kind: view.state,
    figure: view.state === "live" ? plural(view.rows ?? 0, "row") : view.state,
    note,
    aside,
  };
}

function nodePart({ id, topic }) {
  const shape = sign("absent");
  const [figure, note, aside] = ["figure", "note", "aside"].map((name) => el("span", { class: name }));
  const title = el("span", { class: "name", title: id }, id);
  const element = el(
    "a",
    { href: topic ? topicLink(id) : viewLink(id), "data-testid": `node-${id}` },
    el("span", { class: "title" }, shape.element, title),
    el("span", { class: "detail" }, figure, aside),
    note,
  );
  function update(node) {
    const texts = node.topic ? topicTexts(node.topic) : viewTexts(node.view);
    shape.update(texts.kind);
    for (const [part, text] of [
      [figure, texts.figure],
      [note, texts.note],
      [aside, texts.aside],
    ])
      set(part, text);
    element.setAttribute("class", `node ${node.topic ? "topic" : "view"} ${texts.kind}`);
    element.classList.toggle("moving", flows(id));
    element.classList.toggle("replaced", state.replacements.has(id));
    const reads = node.reads.length ? `, reads ${list(node.reads)}` : "";
    element.setAttribute(
      "aria-label",
      `${node.topic ? node.topic.kind : "view"} ${id}, ${texts.figure}, ${texts.note}${reads}`,
    );
    Object.assign(element.style, {
      left: `${node.place.x}px`,
      top: `${node.place.y}px`,
      width: `${node.place.width}px`,
    });
  }
  return { element, update };
}

function edgePart() {
  const [way, flow] = [svg("path", { class: "way" }), svg("path", { class: "flow" })];
  const element = svg("g", {}, way, flow);
  function update({ from, d }) {
    way.setAttribute("d", d);
    flow.setAttribute("d", d);
    element.setAttribute("class", `edge ${flows(from) ? "flowing" : ""}`);
  }
  return { element, update };
}

export function graph() {
  const edges = svg("svg", { class: "edges", "aria-hidden": "true" });
  const nodes = el("div", {
    class: "nodes",
    role: "group",
    "aria-label": "Dataflow: topics and the views that read them",
  });
  const canvas = el("div", { class: "canvas" }, edges, nodes);
  const element = el("section", { class: "graph", "aria-label": "Dataflow" }, canvas);
  let width = 0;
  let layout = null;
  let drawn = "";

  function arrange(all) {
    const form = JSON.stringify([width, all.map(({ id, reads }) => [id, reads])]);
    if (form === drawn) return;
    drawn = form;
    const room = { width, height: HEIGHT, least: 150, most: 230 };
    layout = width < NARROW ? listed(all, room) : layered(all, room);
    Object.assign(canvas.style, { width: `${layout.width}px`, height: `${layout.height}px` });
    edges.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
  }

  function update() {
    const topics = [...state.topics.values()].map((topic) => ({ id: topic.name, topic, reads: [] }));
    const views = [...state.views.values()].map((view) => ({ id: view.name, view, reads: readsOf(view) }));
    const all = [...topics, ...views];
    if (!width || !all.length) return;
    arrange(all);
    const placed = all.map((node) => ({ ...node, place: layout.places.get(node.id) }));
    placed.sort((a, b) => a.place.x - b.place.x || a.place.y - b.place.y);
    keyed(nodes, placed, (node) => node.id, nodePart);
    keyed(edges, layout.edges, (edge) => `${edge.from} ${edge.to}`, edgePart);
  }

  const observer = new ResizeObserver(([entry]) => {
    width = Math.floor(entry.contentRect.width);
    update();
  });
  observer.observe(element);
  return { element, update, close: () => observer.disconnect() };
}
