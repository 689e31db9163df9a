// The chart of a view with the choice of what it measures; nothing where a chart makes no sense.

import { chart } from "./chart.js";
import { el, keyed, set } from "./dom.js";
import { plural } from "./format.js";
import { seriesOf, shapeOf } from "./series.js";
import { watermarkOf } from "./state.js";

const TIMES = 120;

export function measured() {
  const picture = chart();
  const title = el("h2");
  const choice = el("div", { class: "choice", role: "group", "aria-label": "What is drawn" });
  const note = el("p", { class: "caption" });
  const element = el(
    "section",
    { "aria-label": "Chart", hidden: true },
    el("div", { class: "section-head" }, title, choice, note),
    picture.element,
  );
  let measure = null;
  let drawn = null;
  let last = null;

  function choicePart(name) {
    const pick = () => {
      measure = name;
      update(...last);
    };
    const button = el("button", { type: "button", click: pick }, name);
    return { element: button, update: () => button.setAttribute("aria-pressed", String(name === measure)) };
  }

  /** `marks` are the corrections, by the ids of rows. */
  function update(view, rows, marks = new Map()) {
    const shape = view.emit === "late" ? null : shapeOf(view.columns, view.key);
    if (shape && !shape.measures.includes(measure)) [measure] = shape.measures;
    const watermark = view.reads ? watermarkOf(view) : null;
    const corrected = new Map([...marks].map(([id, { before }]) => [id, Number(before[measure])]));
    const next = JSON.stringify([measure, watermark, [...corrected]]);
    if (next === drawn && rows === last[1]) return;
    drawn = next;
    last = [view, rows, marks];
    const model = shape && seriesOf(rows, shape, measure, TIMES);
    element.hidden = !model;
    if (!model) return;
    keyed(choice, shape.measures.length > 1 ? shape.measures : [], (name) => name, choicePart);
    const split = shape.split === null ? "" : ` by ${shape.split}`;
    set(title, `${measure}${split}`);
    set(note, model.names > model.series.length ? `the ${model.series.length} largest of ${model.names}` : "");
    const label = `${measure}${split} over ${plural(model.starts.length, "time")}. Arrow keys go through them.`;
    picture.update({ ...model, measure, watermark, corrected, label });
  }
  return { element, update, close: picture.close };
}
