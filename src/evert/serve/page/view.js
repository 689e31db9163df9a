// The page of a view: its rows as they change, its chart, its figures and its SQL.

import { orderOf, timeOf } from "./columns.js";
import { corrector } from "./corrections.js";
import { el, set } from "./dom.js";
import { bytes, count, list, plural, seconds } from "./format.js";
import { feed } from "./feed.js";
import { measured } from "./measured.js";
import { notices } from "./notices.js";
import { facts, frame, links, problem, scrolling } from "./parts.js";
import { ordered } from "./rows.js";
import { sql } from "./sql.js";
import { readersOf, readsOf, state, watermarkOf } from "./state.js";
import { table } from "./table.js";

const SHOWN = 200;
const READ = 1_000;
const UNREAD = { stopped: "not known since the view stopped", building: "not known before it is built" };
const EMITS = { changes: "every change", close: "once, when a window closes", late: "what came too late" };

function figures(view) {
  const behind = `${plural(view.lag_commits, "commit")}, ${plural(view.lag_events, "event")}`;
  const lag = view.lag_commits ? [seconds(view.lag_seconds ?? 0), behind] : ["none", "up to date"];
  const stragglers = view.corrections && view.emit === "changes" ? "late events that it counts" : "";
  const epoch = view.epoch_ms === null ? "none yet" : seconds(view.epoch_ms / 1_000);
  return [
    ["Rows", view.rows === null ? "unknown" : count(view.rows)],
    [view.emit === "changes" ? "Corrections" : "Late events", count(view.corrections), stragglers],
    ["Lag", ...lag],
    ["Position", view.position < 0 ? "none yet" : count(view.position), `of ${count(state.status.position)}`],
    ["Last epoch", epoch, `${plural(view.changed ?? 0, "row")} changed`],
    ["State", bytes(view.bytes)],
  ];
}

/** How the view is kept, in a sentence. */
function kept(view) {
  const how = view.recomputes
    ? `It is recomputed whole: ${view.recomputes}.`
    : "It is kept incrementally: a change costs what it changes.";
  const key = view.key?.length ? ` A row is identified by ${list(view.key)}.` : "";
  const group = view.group === "default" ? "" : ` It belongs to the group ${view.group}.`;
  return `${how} It shows ${EMITS[view.emit] ?? view.emit}.${key}${group}`;
}

function replacement(view) {
  const next = state.replacements.get(view.name);
  if (!next) return "";
  if (next.held) return `A replacement is ready; evert view switch ${view.name} lets it in.`;
  return `A replacement is ${next.state}, at position ${count(next.position)}; it takes over when it is there.`;
}

/** The definition is drawn anew only when it is another one. */
function definition() {
  const element = el("section", { "aria-label": "Definition" });
  let drawn = "";
  function update(view) {
    const [reads, readers] = [readsOf(view), readersOf(view.name).map((one) => one.name)];
    const next = JSON.stringify([view.query, reads, readers, kept(view)]);
    if (next === drawn) return;
    drawn = next;
    const how = el("p", { class: "kept" }, kept(view));
    const lines = [links("Reads", reads), ...(readers.length ? [links("Read by", readers)] : [])];
    element.replaceChildren(el("h2", {}, "Definition"), how, ...lines, sql(view.query));
  }
  return { element, update };
}

export function viewPage(name) {
  const replacing = el("p", { class: "replacing" });
  const numbers = facts();
  const warnings = notices(name);
  const caption = el("p", { class: "caption" });
  const trouble = el("div");
  const picture = measured();
  const text = definition();
  const rows = table({ label: `Rows of ${name}`, testid: "rows", sort });
  const scroll = scrolling("Rows", rows.element);
  const heading = el("div", { class: "section-head" }, el("h2", {}, "Rows"), caption);
  const section = el("section", { "aria-label": "Rows" }, heading, trouble, scroll);
  const above = [replacing, warnings.element, numbers.element, picture.element];
  const page = frame("view", name, ...above, section, text.element);

  let live = null;
  let corrections = null;
  let order = null;
  let last = null;
  let sorted = [];
  let form = null;

  function sort(column) {
    order = { column, down: order?.column === column ? !order.down : true };
    live.again();
    arrange();
    draw();
  }

  function arrange() {
    sorted = last ? ordered(last.rows, state.views.get(name).columns, order).slice(0, SHOWN) : [];
  }

  function draw(change) {
    const view = state.views.get(name);
    if (!view) return;
    scroll.hidden = !last;
    if (!last) return set(caption, UNREAD[view.state] ?? "reading …");
    const marks = corrections.marks();
    rows.update({ columns: view.columns, rows: sorted, change, marks, order });
    const all = last.total ? plural(last.total, "row") : "no rows yet";
    set(caption, last.total > sorted.length ? `showing ${count(sorted.length)} of ${all}` : all);
    return picture.update(view, last.rows, marks);
  }

  /** Follows the rows, anew when the view has got other columns. */
  function open(view) {
    const next = JSON.stringify([view.columns, view.key]);
    if (next === form || !view.columns.length) return;
    form = next;
    live?.close();
    last = null;
    order = orderOf(view.columns, view.key);
    corrections = corrector(timeOf(view.columns), () => draw());
    live = feed(view, { key: view.key, limit: READ, order: () => order }, { receive, fail });
  }

  function receive(next) {
    last = next;
    trouble.replaceChildren();
    corrections.changed(next.change.changed, next.rows);
    arrange();
    draw(next.change);
  }

  function fail(error) {
    if (error.status && !UNREAD[state.views.get(name)?.state]) trouble.replaceChildren(problem(error));
  }

  function update() {
    const view = state.views.get(name);
    page.update(view, view?.state);
    if (!view) return;
    open(view);
    set(replacing, replacement(view));
    warnings.update();
    numbers.update(figures(view));
    text.update(view);
    corrections?.count(view.corrections, watermarkOf(view));
    draw();
  }

  function close() {
    live?.close();
    picture.close();
  }
  return { element: page.element, title: () => name, update, close };
}
