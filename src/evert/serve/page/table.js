// A table of rows that shows what changes: new and changed values light up and fade, rows that are gone fade away.

import { isNumeric } from "./columns.js";
import { el, set, stillness } from "./dom.js";
import { value } from "./format.js";

const FADE = 900;
const GLIDING = 80;
const NOTHING = { added: new Set(), changed: new Map(), gone: new Map() };

/** Starts the fading of a highlight, again if it is under way. */
export function flash(element, kind) {
  element.dataset.flash = element.dataset.flash === `${kind}-a` ? `${kind}-b` : `${kind}-a`;
}

function rowPart(columns) {
  const mark = el("span", { class: "chip corrected", "data-testid": "corrected" }, "corrected");
  const cells = columns.map((column) => el("td", { class: isNumeric(column.type) ? "number" : null }));
  const element = el("tr", {}, ...cells);

  function update(row, { before, correctedFrom }) {
    columns.forEach(({ name, type }, index) => {
      const cell = cells[index];
      const text = value(row[name], type);
      const was = correctedFrom && value(correctedFrom[name], type);
      const parts = was && was !== text ? [el("s", {}, was), " ", text] : [text];
      if (index === 0 && correctedFrom) parts.push(" ", mark);
      if (parts.length === 1) set(cell, text);
      else if (cell.textContent !== parts.map((part) => part.textContent ?? part).join(""))
        cell.replaceChildren(...parts);
      cell.classList.toggle("null", row[name] === null);
      if (before && value(before[name], type) !== text) flash(cell, "changed");
    });
    element.classList.toggle("is-corrected", Boolean(correctedFrom));
  }
  return { element, update };
}

/**
 * `{element, update}`; `update` takes `columns`, `rows` as `[id, row]` in order, and, where they are known, what is
 * different (`change`), the present corrections (`marks`) and the `order`. `sort(column)` is called for a heading.
 */
export function table({ label, sort = null, testid = null }) {
  const head = el("tr");
  const body = el("tbody");
  const element = el("table", { "aria-label": label, "data-testid": testid }, el("thead", {}, head), body);
  let parts = new Map();
  let shape = null;
  let heading = null;

  function drawHead(columns, order) {
    const cells = columns.map(({ name, type }) => {
      const sorted = order?.column === name ? (order.down ? "descending" : "ascending") : null;
      const title = sort ? el("button", { type: "button", title: type, click: () => sort(name) }, name) : name;
      return el("th", { scope: "col", class: isNumeric(type) ? "number" : null, "aria-sort": sorted }, title);
    });
    const focused = [...head.children].findIndex((cell) => cell.contains(document.activeElement));
    head.replaceChildren(...cells);
    if (focused >= 0) cells[focused]?.querySelector("button")?.focus();
  }

  /** Rows that are elsewhere now glide there. */
  function glide(before) {
    for (const [part, top] of before) {
      const moved = top - part.element.offsetTop;
      if (!moved || !part.element.isConnected) continue;
      part.element.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], {
        duration: 300,
        easing: "ease-out",
      });
    }
  }

  function leave(part) {
    part.element.classList.add("gone");
    part.element.setAttribute("aria-hidden", "true");
    setTimeout(() => part.element.remove(), FADE);
  }

  return {
    element,
    update({ columns, rows, change = NOTHING, marks = new Map(), order = null }) {
      const [nextShape, nextHeading] = [JSON.stringify(columns), JSON.stringify([columns, order])];
      if (heading !== nextHeading) drawHead(columns, order);
      if (shape !== nextShape) {
        parts = new Map();
        body.replaceChildren();
      }
      [shape, heading] = [nextShape, nextHeading];
      const gliding = rows.length <= GLIDING && !stillness.matches;
      const tops = gliding
        ? new Map([...parts.values()].map((part) => [part, part.element.offsetTop]))
        : new Map();
      const next = new Map(rows.map(([id]) => [id, parts.get(id) ?? rowPart(columns)]));
      for (const [id, part] of parts) {
        if (next.has(id)) continue;
        tops.delete(part);
        if (change.gone.has(id)) leave(part);
        else part.element.remove();
      }
      let here = body.firstElementChild;
      for (const [id, row] of rows) {
        const part = next.get(id);
        while (here?.classList.contains("gone")) here = here.nextElementSibling;
        if (here === part.element) here = here.nextElementSibling;
        else body.insertBefore(part.element, here);
        part.update(row, { before: change.changed.get(id)?.before, correctedFrom: marks.get(id)?.before });
        if (change.added.has(id)) flash(part.element, "added");
      }
      parts = next;
      if (tops.size) glide(tops);
    },
  };
}
