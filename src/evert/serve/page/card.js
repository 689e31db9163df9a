// A view on the overview: what it is, and a small live picture of it.

import { chart } from "./chart.js";
import { orderOf } from "./columns.js";
import { el, set } from "./dom.js";
import { count, plural, seconds } from "./format.js";
import { polled } from "./feed.js";
import { badge, viewLink } from "./parts.js";
import { difference, identified, ordered } from "./rows.js";
import { seriesOf, shapeOf } from "./series.js";
import { state, watermarkOf } from "./state.js";
import { flash, table } from "./table.js";

const ROWS = 5;
const COLUMNS = 4;
const TIMES = 40;
const ENOUGH = 240;

/** The picture in a card: a line over time where that makes sense, else the first rows. */
function preview(view) {
  const element = el("div", { class: "preview" });
  const caption = el("p", { class: "preview-caption" });
  let line = null;
  let rows = null;
  let before = null;

  function clear() {
    line?.close();
    [line, rows] = [null, null];
  }

  function say(text) {
    clear();
    element.replaceChildren(el("p", { class: "none" }, text));
  }

  function drawLine(model, shape, watermark) {
    if (!line) {
      clear();
      line = chart({ mini: true });
      element.replaceChildren(caption, line.element);
    }
    const [measure] = shape.measures;
    const latest = model.series[0].points.at(-1);
    set(caption, shape.split === null ? `${measure} ${count(latest.y)}` : `${measure} by ${shape.split}`);
    line.update({ ...model, watermark, corrected: new Map(), label: `${measure} over time` });
  }

  function drawRows(columns, byId, key) {
    if (!rows) {
      clear();
      rows = table({ label: `First rows of ${view.name}` });
      element.replaceChildren(rows.element);
    }
    const change = difference(before ?? byId, byId);
    const first = ordered(byId, columns, orderOf(columns, key)).slice(0, ROWS);
    rows.update({ columns: columns.slice(0, COLUMNS), rows: first, change });
    before = byId;
  }

  return {
    element,
    receive({ columns, rows: list }) {
      const now = state.views.get(view.name) ?? view;
      const shape = now.emit === "late" ? null : shapeOf(columns, now.key);
      const byId = identified(list, now.key);
      const model = shape && seriesOf(byId, shape, shape.measures[0], TIMES);
      if (model) drawLine(model, shape, watermarkOf(now));
      else if (list.length) drawRows(columns, byId, now.key);
      else say(now.emit === "late" ? "Nothing came too late." : "No rows yet.");
    },
    fail: (error) => error.status && say(error.message),
    close: () => line?.close(),
  };
}

export function card(view) {
  const sign = badge(view.state);
  const comment = el("p", { class: "card-comment" });
  const figures = el("p");
  const corrected = el("span", { class: "card-corrected" });
  const picture = preview(view);
  const title = el("a", { href: viewLink(view.name) }, view.name);
  const foot = el("div", { class: "card-foot" }, figures, corrected);
  const element = el(
    "article",
    { class: "card" },
    el("header", {}, el("h3", {}, title), sign.element),
    comment,
    picture.element,
    foot,
  );
  let seen = false;
  let corrections = null;

  const order = () => {
    const { columns, key } = state.views.get(view.name);
    return columns.length ? orderOf(columns, key) : null;
  };
  const options = { limit: ENOUGH, order, wanted: () => seen };
  const rows = polled(view.name, options, picture.receive, picture.fail);
  const look = ([entry]) => (seen = entry.isIntersecting);
  const observer = new IntersectionObserver(look, { rootMargin: "400px" });
  observer.observe(element);

  function update(next) {
    element.classList.toggle("failed", Boolean(next.error) || next.state === "stopped");
    sign.update(next.state);
    set(comment, next.comment ?? "");
    comment.hidden = !next.comment;
    const lag = next.lag_commits ? `${seconds(next.lag_seconds ?? 0)} behind` : "up to date";
    const size = next.rows === null ? [] : [plural(next.rows, "row")];
    const epoch = next.epoch_ms === null ? [] : [seconds(next.epoch_ms / 1_000)];
    set(figures, [...size, lag, ...epoch].join(" · "));
    const corrects = next.emit === "changes" && next.corrections;
    set(corrected, corrects ? plural(next.corrections, "correction") : "");
    if (corrections !== null && next.corrections > corrections) flash(corrected, "changed");
    corrections = next.corrections;
  }

  function close() {
    rows.close();
    observer.disconnect();
    picture.close();
  }
  return { element, update, close };
}
