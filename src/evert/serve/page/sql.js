// SQL, lightly coloured; names of topics and views lead to their pages.

import { isWindow } from "./columns.js";
import { el } from "./dom.js";
import { linkTo } from "./parts.js";
import { state } from "./state.js";

const KEYWORDS = new Set(
  `ALL AND ANTI ANY AS ASC BETWEEN BY CASE CAST CROSS CUBE CURRENT DESC DISTINCT ELSE END EXCEPT EXISTS
  FALSE FILTER FIRST FOLLOWING FOR FROM FULL GROUP GROUPING HAVING IN INNER INTERSECT INTERVAL INTO
  IS JOIN LAST LATERAL LEFT LIKE LIMIT NOT NULL NULLS OF OFFSET ON OR ORDER OUTER OVER PARTITION
  PIVOT PRECEDING QUALIFY RANGE RECURSIVE RIGHT ROLLUP ROW ROWS SELECT SEMI SET SETS SYSTEM_TIME
  THEN TRUE UNBOUNDED UNION USING VALUES VIEW WHEN WHERE WITH WITHIN`.split(/\s+/),
);

const TOKENS =
  /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^'\\]|\\.|'')*')|(`[^`]*`|[A-Za-z_][\w.]*)|(\d[\w.]*)|([\s\S])/g;

/** A name as it is written in SQL: in backquotes, if it is no plain word. */
export const quoted = (name) =>
  /^[A-Za-z_]\w*$/.test(name) && !KEYWORDS.has(name.toUpperCase()) ? name : `\`${name.replaceAll("`", "``")}\``;

/** What stands behind ORDER BY; windows are ordered by their start. */
export function orderText({ column, down }, columns) {
  const { type } = columns.find((one) => one.name === column);
  return `${quoted(column)}${isWindow(type) ? ".start" : ""}${down ? " DESC" : ""}`;
}

/** Without the empty lines around it, and without what all lines are indented by. */
function dedented(text) {
  const lines = text.replace(/^\s*\n|\s+$/g, "").split("\n");
  const indents = lines
    .slice(/^\s/.test(text) ? 0 : 1)
    .filter((line) => line.trim())
    .map((line) => /^\s*/.exec(line)[0].length);
  const common = indents.length ? Math.min(...indents) : 0;
  return lines.map((line) => (/^\s/.test(line) ? line.slice(common) : line)).join("\n");
}

function coloured(word, before, follows) {
  const name = word.replaceAll("`", "");
  const read = /^(FROM|JOIN)$/i.test(before ?? "") && (state.topics.has(name) || state.views.has(name));
  if (read) return linkTo(name);
  if (KEYWORDS.has(word.toUpperCase()) && follows !== "(") return el("span", { class: "keyword" }, word);
  if (follows === "(") return el("span", { class: "function" }, word);
  return word;
}

export function sql(text) {
  const clean = dedented(text);
  const parts = [...clean.matchAll(TOKENS)].map(([all, comment, string, word, number]) => ({
    all,
    comment,
    string,
    word,
    number,
  }));
  const nodes = parts.map(({ all, comment, string, word, number }, index) => {
    if (comment) return el("span", { class: "comment" }, all);
    if (string) return el("span", { class: "string" }, all);
    if (number) return el("span", { class: "literal" }, all);
    const before = parts.slice(0, index).findLast((part) => part.all.trim());
    return word ? coloured(word, before?.all, parts[index + 1]?.all) : all;
  });
  return el("pre", { class: "sql", tabindex: "0", "aria-label": "SQL" }, el("code", {}, ...nodes));
}
