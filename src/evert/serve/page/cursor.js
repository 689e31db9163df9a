// The line that follows the pointer, or the arrow keys, over a chart, and the values under it.

import { el, place, svg } from "./dom.js";
import { count, moment, windowText } from "./format.js";

export function cursor(element, picture, modelOf) {
  const line = svg("line", { class: "cursor" });
  const tip = el("div", { class: "tip", hidden: true });
  let space = null;
  let start = null;
  let said = "";

  const pointsAt = (time) =>
    modelOf().series.flatMap(({ points, colour }) => {
      const point = points.find((candidate) => candidate.start === time);
      return point ? [{ ...point, colour }] : [];
    });

  function show() {
    const points = start === null || !space ? [] : pointsAt(start);
    tip.hidden = !points.length;
    line.classList.toggle("on", points.length > 0);
    if (!points.length) return;
    const [point] = points;
    const x = space.across(point);
    place(line, { x1: x, x2: x, y1: space.top, y2: space.bottom });
    const { watermark, corrected, series, measure } = modelOf();
    const left = (width) => (x + 14 + width > space.right ? x - 14 - width : x + 14);
    const put = () =>
      (tip.style.transform = `translate(${Math.max(0, left(tip.offsetWidth))}px, ${space.top}px)`);
    const next = JSON.stringify([points, watermark, [...corrected]]);
    if (next === said) return put();
    said = next;
    const values = points.map(({ id, name, y, colour }) => {
      const was = corrected.has(id) ? [el("s", {}, count(corrected.get(id))), " "] : [];
      const label = series.length > 1 ? el("dt", { class: `series-${colour}` }, name) : el("dt", {}, measure);
      return el("div", {}, label, el("dd", {}, ...was, count(y)));
    });
    const time = point.end > point.start ? windowText(point.start, point.end) : moment(point.start);
    const open = watermark !== null && point.end > watermark ? el("p", {}, "still open") : null;
    tip.replaceChildren(
      ...[el("p", { class: "tip-time" }, time), el("dl", {}, ...values), open].filter(Boolean),
    );
    return put();
  }

  function choose(time, aloud = false) {
    if (time === start) return;
    tip.setAttribute("aria-live", aloud ? "polite" : "off");
    start = time;
    show();
  }

  function nearest(x) {
    const points = modelOf().starts.flatMap((time) => pointsAt(time).slice(0, 1));
    const distance = (point) => Math.abs(space.across(point) - x);
    return points.reduce((best, point) => (distance(point) < distance(best) ? point : best)).start;
  }

  function step(by) {
    const { starts } = modelOf();
    const index = starts.indexOf(start);
    choose(
      starts[index === -1 ? starts.length - 1 : Math.max(0, Math.min(starts.length - 1, index + by))],
      true,
    );
  }

  const keys = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  picture.append(line);
  element.append(tip);
  picture.addEventListener("pointermove", (event) => space && choose(nearest(event.offsetX)));
  picture.addEventListener("pointerleave", () => choose(null));
  picture.addEventListener("blur", () => choose(null));
  picture.addEventListener("keydown", (event) => {
    if (event.key === "Escape") choose(null);
    if (!(event.key in keys)) return;
    event.preventDefault();
    step(keys[event.key]);
  });

  return {
    /** Tells where things are now; what is shown moves with them. */
    move(next) {
      space = next;
      if (start !== null) show();
    },
  };
}
