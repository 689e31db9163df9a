// Small pieces that several pages share: signs of states and kinds, facts, notices, commands.

import { el, keyed, set, svg } from "./dom.js";
import { state } from "./state.js";

const SIGNS = {
  live: "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11Z",
  building: "M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13ZM8 3a5 5 0 0 0 0 10Z",
  resuming: "M4 2.5L13.5 8L4 13.5Z",
  stopped: "M3 3H13V13H3Z",
  absent: "M8 1.5L14.5 8L8 14.5L1.5 8ZM8 5L5 8L8 11L11 8Z",
  stream: "M1 5q3.5-4 7 0t7 0M1 11q3.5-4 7 0t7 0",
  table: "M2 2.5H14V13.5H2ZM2 6.5H14M2 10H14M7 6.5V13.5",
};

/** A sign of a state or a kind, which differs in shape and not only in colour. */
export function sign(kind) {
  const path = svg("path", {});
  const element = svg("svg", { viewBox: "0 0 16 16", width: 12, height: 12, "aria-hidden": "true" }, path);
  const update = (next) => {
    element.setAttribute("class", `sign ${next}`);
    path.setAttribute("d", SIGNS[next] ?? SIGNS.absent);
  };
  update(kind);
  return { element, update };
}

/** A sign with its word. */
export function badge(kind) {
  const shape = sign(kind);
  const word = el("span", {}, kind);
  const element = el("span", {}, shape.element, word);
  const update = (next) => {
    element.setAttribute("class", `badge ${next}`);
    shape.update(next);
    set(word, next);
  };
  update(kind);
  return { element, update };
}

/** A page about one thing: name, sign and comment, and `parts` below; or that there is no such thing. */
export function frame(kind, name, ...parts) {
  const sign = badge("absent");
  const comment = el("p", { class: "lead" });
  const title = () => el("h1", { tabindex: "-1" }, name);
  const head = el("div", { class: "page-head" }, title(), sign.element);
  const there = el("div", { class: "page" }, head, comment, ...parts);
  const nothing = el("p", { class: "lead" }, `There is no ${kind} of this name.`);
  const missing = el("div", { class: "page" }, title(), nothing);
  const element = el("div", {}, missing);

  function update(thing, mark) {
    const shown = thing ? there : missing;
    if (element.firstChild !== shown) element.replaceChildren(shown);
    if (!thing) return;
    sign.update(mark);
    set(comment, thing.comment ?? "");
  }
  return { element, update };
}

/** A list of names and values, `[name, value, note]`. */
export function facts() {
  const element = el("dl", { class: "facts" });
  const update = (items) =>
    keyed(
      element,
      items,
      ([name]) => name,
      ([name]) => {
        const [value, note] = [el("span", { class: "fact-value" }), el("span", { class: "fact-note" })];
        return {
          element: el("div", {}, el("dt", {}, name), el("dd", {}, value, note)),
          update: ([, text, more = ""]) => {
            set(value, text);
            set(note, more);
          },
        };
      },
    );
  return { element, update };
}

export const viewLink = (name) => `#/view/${encodeURIComponent(name)}`;
export const topicLink = (name) => `#/topic/${encodeURIComponent(name)}`;
export const linkTo = (name) =>
  el("a", { href: state.views.has(name) ? viewLink(name) : topicLink(name) }, name);

/** Names as links, with what they are to each other before them. */
export function links(label, names) {
  const joined = names.flatMap((name, index) => [index ? ", " : " ", linkTo(name)]);
  return el("p", { class: "links" }, label, ...(names.length ? joined : [" nothing"]));
}

/** What may be larger than its place, and is scrolled by keys too. */
export const scrolling = (label, ...children) =>
  el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);

const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** A command of Evert for this database, such as `evert run --db shop.evert`. */
export const evert = (command, rest = "") =>
  `evert ${command} --db ${shellWord(state.status.database)}${rest && ` ${rest}`}`;

/** A command that can be copied. */
export function command(text) {
  const copied = async () => {
    await navigator.clipboard.writeText(text);
    set(button, "copied");
    setTimeout(() => set(button, "copy"), 1_500);
  };
  const button = el(
    "button",
    { type: "button", class: "copy", "aria-label": `Copy: ${text}`, click: copied },
    "copy",
  );
  return el(
    "div",
    { class: "command" },
    el("pre", { tabindex: "0" }, text),
    navigator.clipboard ? button : null,
  );
}

/** What went wrong, in the words of the server, with its hint. */
export function problem({ title = null, message, hint = null, kind = "error" }) {
  return el(
    "div",
    { class: `notice ${kind}` },
    el("span", { class: "notice-sign", "aria-hidden": "true" }, kind === "error" ? "✕" : "!"),
    el(
      "div",
      {},
      title && el("strong", {}, title),
      el("p", {}, message),
      hint && el("p", { class: "hint" }, hint),
    ),
  );
}
