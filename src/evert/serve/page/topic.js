// The page of a topic: what comes in, how far its event time is, its columns, and how to send an event.

import { chart } from "./chart.js";
import { el } from "./dom.js";
import { bytes, clock, count, perSecond, seconds } from "./format.js";
import { notices } from "./notices.js";
import { facts, frame, links } from "./parts.js";
import { example, schema } from "./schema.js";
import { rate, rates, readersOf, serverNow, state } from "./state.js";

function figures(topic) {
  const mark = topic.watermark === null ? null : Date.parse(topic.watermark);
  const behind =
    mark === null ? `by ${topic.event_time}` : `${seconds(Math.max(0, (serverNow() - mark) / 1_000))} ago`;
  const timed = topic.event_time && [
    ["Watermark", mark === null ? "none yet" : clock(mark), behind],
    ["Sources", count(topic.sources), topic.idle ? `${count(topic.idle)} idle` : "none idle"],
    ["Late", count(topic.late), topic.dropped ? `${count(topic.dropped)} set aside` : "none set aside"],
  ];
  return [
    ["Coming in", perSecond(rate(topic.name))],
    ["Ever appended", count(topic.appended)],
    ["Rows kept", count(topic.rows), bytes(topic.bytes)],
    ...(timed || []),
  ];
}

export function topicPage(name) {
  const numbers = facts();
  const warnings = notices(name);
  const picture = chart();
  const title = el("h2", {}, "Rows a second");
  const flow = el("section", { "aria-label": "Rows a second", hidden: true }, title, picture.element);
  const details = el("div");
  const page = frame("topic", name, warnings.element, numbers.element, flow, details);
  let drawn = "";
  let latest = null;

  function drawFlow() {
    const points = rates(name).map(({ time, rate: y }) => ({
      id: `${time}`,
      start: time,
      end: time,
      y,
      name: "",
    }));
    flow.hidden = points.length < 3;
    if (flow.hidden || points.at(-1).id === latest) return;
    latest = points.at(-1).id;
    const starts = points.map((point) => point.start);
    const model = { series: [{ name: "", points }], names: 1, starts, step: null, bars: false };
    const label = "Rows a second since this page was opened";
    picture.update({ ...model, measure: "rows/s", watermark: null, corrected: new Map(), label });
  }

  function drawDetails(topic) {
    const readers = readersOf(name).map((view) => view.name);
    const next = JSON.stringify([topic.schema, topic.key, topic.event_time, readers]);
    if (next === drawn) return;
    drawn = next;
    details.replaceChildren(
      links("Read by", readers),
      el("h2", {}, "Columns"),
      schema(topic),
      el("h2", {}, "Send an event"),
      example(topic),
    );
  }

  function update() {
    const topic = state.topics.get(name);
    page.update(topic, topic?.kind);
    if (!topic) return;
    warnings.update();
    numbers.update(figures(topic));
    drawFlow();
    drawDetails(topic);
  }
  return { element: page.element, title: () => name, update, close: picture.close };
}
