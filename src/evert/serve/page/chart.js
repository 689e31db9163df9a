// A chart over time, drawn by hand: bars or lines that glide to their new values instead of being drawn anew.

import { cursor } from "./cursor.js";
import { el, keyed, place, set, stillness, svg } from "./dom.js";
import { compact } from "./format.js";
import { between, goalOf, middle } from "./motion.js";
import { roundTimes } from "./scale.js";

const GLIDE = 450;
const THINNEST_BAR = 3;

function legendPart({ name }) {
  const stroke = svg("path", { class: "line", d: "M1 4H21" });
  const item = el("li", {}, svg("svg", { width: 22, height: 8, "aria-hidden": "true" }, stroke), name);
  return { element: item, update: ({ colour }) => item.setAttribute("class", `series-${colour}`) };
}

let charts = 0;

export function chart({ mini = false } = {}) {
  const layers = ["grid", "bars", "lines", "mark", "marks"].map((name) => svg("g", { class: name }));
  const [grid, bars, lines, mark, marks] = layers;
  const frame = svg("rect");
  const clip = svg("clipPath", { id: `plot-${(charts += 1)}` }, frame);
  const picture = svg("svg", { class: "picture", role: "img", tabindex: mini ? null : "0" }, clip, ...layers);
  for (const layer of [bars, lines, marks]) layer.setAttribute("clip-path", `url(#${clip.id})`);
  const legend = el("ul", { class: "legend" });
  const element = el(
    "div",
    { class: mini ? "chart mini" : "chart", "data-testid": mini ? null : "chart" },
    picture,
  );
  if (!mini) element.append(legend);
  let model = null;
  let goal = null;
  let shown = null;
  let space = null;
  let next = 0;
  let colours = new Map();
  let size = { width: 0, height: 0 };

  const isOpen = (point) => model.watermark !== null && point.end > model.watermark;

  function geometry() {
    const longest = Math.max(0, ...shown.ticks.map((tick) => compact(tick).length));
    const [left, right] = [mini ? 1 : 16 + 7 * longest, size.width - (mini ? 5 : 12)];
    const [top, bottom] = [mini ? 5 : 18, size.height - (mini ? 2 : 26)];
    const x = (time) => left + ((time - shown.from) / (shown.to - shown.from || 1)) * (right - left);
    const y = (value) => bottom - ((value - shown.low) / (shown.high - shown.low || 1)) * (bottom - top);
    const wide = x(model.step) - x(0);
    const gap = Math.min(3, wide * 0.25);
    const asBars = model.bars && wide >= THINNEST_BAR;
    const bar = (point) => ({ x: x(point.start) + gap / 2, width: wide - gap });
    const across = (point) => x(asBars ? point.start + model.step / 2 : middle(point));
    return { left, right, top, bottom, x, y, asBars, bar, across };
  }

  function tickPart(tick) {
    const level = tick.time === undefined;
    const line = svg("line", { class: level ? "rule" : "tick" });
    const text = svg("text", { class: level ? "y" : "x" });
    const update = ({ time, value, text: label }) => {
      const { left, right, bottom, x, y } = space;
      const [across, up] = level ? [left, y(value)] : [x(time), bottom];
      set(text, label);
      place(
        line,
        level ? { x1: left, x2: right, y1: up, y2: up } : { x1: across, x2: across, y1: up, y2: up + 4 },
      );
      place(text, level ? { x: left - 8, y: up + 4 } : { x: across, y: up + 18 });
    };
    return { element: svg("g", {}, line, text), update };
  }

  function watermarkPart() {
    const [line, text] = [svg("line"), svg("text", {}, "watermark")];
    const update = (time) => {
      const x = space.x(time);
      place(line, { x1: x, x2: x, y1: space.top, y2: space.bottom });
      place(text, { x: Math.max(space.left + 62, x) - 4, y: space.top - 6 });
    };
    return { element: svg("g", {}, line, text), update };
  }

  function drawAxes() {
    if (mini) return;
    const heights = shown.ticks.map((value) => ({ key: `y${value}`, text: compact(value), value }));
    const most = Math.max(2, Math.floor((space.right - space.left) / 84));
    const times = roundTimes(shown.from, shown.to, most).map((tick) => ({ key: `x${tick.time}`, ...tick }));
    keyed(grid, [...heights, ...times], (tick) => tick.key, tickPart);
    const at = model.watermark;
    keyed(mark, at > shown.from && at < shown.to ? [at] : [], () => "watermark", watermarkPart);
  }

  function barPart() {
    const bar = svg("rect", { rx: 2 });
    const update = (point) => {
      const [a, b] = [shown.values.get(point.id), Math.max(0, shown.low)].map(space.y);
      place(bar, { ...space.bar(point), y: Math.min(a, b), height: Math.max(1, Math.abs(a - b)) });
      bar.classList.toggle("open", isOpen(point));
    };
    return { element: bar, update };
  }

  function linePart() {
    const [area, path, open] = ["area", "line", "line open"].map((name) => svg("path", { class: name }));
    const dot = svg("circle", { r: mini ? 2.5 : 3.5 });
    const group = svg("g", {}, area, path, open, dot);
    const update = ({ points, colour }) => {
      group.setAttribute("class", `series-${colour}`);
      const places = points.map((point) => [space.across(point), space.y(shown.values.get(point.id))]);
      const way = (some) =>
        some.length && `M${some.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
      const closed = points.filter((point) => !isOpen(point)).length;
      const d = way(places);
      const [[first], [last, height]] = [places[0], places.at(-1)];
      path.setAttribute("d", way(places.slice(0, closed)) || "M0 0");
      open.setAttribute("d", way(places.slice(Math.max(0, closed - 1))));
      area.setAttribute(
        "d",
        model.series.length === 1 ? `${d}L${last} ${space.bottom}L${first} ${space.bottom}Z` : "",
      );
      place(dot, { cx: last, cy: height });
    };
    return { element: group, update };
  }

  /** What a correction added to a bar, or took from it. */
  function correctedBarPart() {
    const part = svg("rect");
    const update = (point) => {
      const [now, before] = [shown.values.get(point.id), model.corrected.get(point.id)].map(space.y);
      const { x, width } = space.bar(point);
      place(part, { x, width, y: Math.min(now, before), height: Math.max(2, Math.abs(now - before)) });
    };
    return { element: part, update };
  }

  /** A ring at a corrected point, with a dashed line from where it was. */
  function correctedPointPart() {
    const [stem, ring] = [svg("line", { class: "stem" }), svg("circle", { r: 5 })];
    const update = (point) => {
      const x = space.across(point);
      const [now, before] = [shown.values.get(point.id), model.corrected.get(point.id)].map(space.y);
      place(stem, { x1: x, x2: x, y1: before, y2: now });
      place(ring, { cx: x, cy: now });
    };
    return { element: svg("g", {}, stem, ring), update };
  }

  /** The colour of each line, by number; a line keeps its own as long as it is there. */
  function recolour() {
    const names = model.series.map((line) => line.name);
    const before = new Map([...colours].filter(([name]) => names.includes(name)));
    const free = names.map((_, index) => index + 1).filter((number) => ![...before.values()].includes(number));
    colours = new Map(names.map((name) => [name, before.get(name) ?? free.shift()]));
    model.series = model.series.map((line) => ({ ...line, colour: colours.get(line.name) }));
  }

  function draw() {
    if (!shown || !size.width) return;
    space = geometry();
    place(picture, { viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, height: size.height });
    place(frame, { x: space.left - 1, width: space.right - space.left + 6, y: 0, height: size.height });
    drawAxes();
    const corrected = model.series
      .flatMap((line) => line.points)
      .filter((point) => model.corrected.has(point.id));
    keyed(bars, space.asBars ? model.series[0].points : [], (point) => point.id, barPart);
    keyed(lines, space.asBars ? [] : model.series, (line) => line.name, linePart);
    const key = (point) => `${space.asBars} ${point.id}`;
    keyed(marks, corrected, key, space.asBars ? correctedBarPart : correctedPointPart);
    pointer?.move(space);
  }

  function glide() {
    cancelAnimationFrame(next);
    const start = shown ?? goal;
    const began = performance.now();
    const step = (now) => {
      const part = stillness.matches || !size.width ? 1 : Math.min(1, Math.max(0, now - began) / GLIDE);
      shown = between(start, goal, 1 - (1 - part) ** 3, model.bars);
      draw();
      if (part < 1) next = requestAnimationFrame(step);
    };
    step(began);
  }

  const pointer = mini ? null : cursor(element, picture, () => model);
  const observer = new ResizeObserver(([entry]) => {
    size = { width: entry.contentRect.width, height: mini ? 64 : 260 };
    draw();
  });
  observer.observe(element);

  return {
    element,
    /** Shows what `seriesOf` gives, with `measure`, `watermark`, `corrected` (id → old value) and a `label`. */
    update(given) {
      model = { ...given };
      goal = goalOf(model, mini);
      picture.setAttribute("aria-label", model.label);
      recolour();
      keyed(legend, model.series.length > 1 ? model.series : [], (line) => line.name, legendPart);
      glide();
    },
    close() {
      cancelAnimationFrame(next);
      observer.disconnect();
    },
  };
}
