// Builds and updates the document; what comes from data only ever becomes a text node or an attribute.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** An element; a function among the attributes listens to the event of that name. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets the text of an element, if it is another one. */
export function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function place(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

const kept = new WeakMap();

/**
 * Makes the children of `parent` one part for each item, in order. A part is `{element, update(item), close()}`;
 * one whose key is there already is kept and updated, so focus, selection and animations live on.
 */
export function keyed(parent, items, keyOf, create) {
  const before = kept.get(parent) ?? new Map();
  const after = new Map(items.map((item) => [keyOf(item), item]));
  for (const [key, part] of before) {
    if (after.has(key)) continue;
    part.close?.();
    part.element.remove();
  }
  const parts = new Map();
  let index = 0;
  for (const [key, item] of after) {
    const part = before.get(key) ?? create(item);
    const there = parent.children[index++] ?? null;
    if (there !== part.element) parent.insertBefore(part.element, there);
    part.update?.(item);
    parts.set(key, part);
  }
  kept.set(parent, parts);
}

export const stillness = window.matchMedia("(prefers-reduced-motion: reduce)");
