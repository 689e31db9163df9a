// The schema of a topic, as a table and as an example.

import { el } from "./dom.js";
import { command, scrolling } from "./parts.js";

const EXAMPLES = [
  [/^(TINY|SMALL|BIG)?INT/i, 1],
  [/^(DECIMAL|NUMERIC)/i, "9.90"],
  [/^(DOUBLE|FLOAT|REAL)/i, 0.5],
  [/^BOOLEAN/i, true],
  [/^DATE/i, "2026-05-04"],
  [/^TIMESTAMP/i, "2026-05-04T12:00:00Z"],
  [/^ARRAY/i, []],
  [/^(STRUCT|MAP)/i, {}],
];

/** The columns in a schema: text up to each comma that is in no brackets. */
function columnsOf(schema) {
  const parts = [""];
  let depth = 0;
  for (const letter of schema) {
    depth += "<(".includes(letter) ? 1 : ">)".includes(letter) ? -1 : 0;
    if (letter === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts
    .map((part) => /^\s*(`[^`]*`|\S+)\s+(.*?)\s*$/s.exec(part))
    .filter(Boolean)
    .map(([, name, type]) => ({ name: name.replaceAll("`", ""), type }));
}

/** The columns of a topic, and what they are for. */
export function schema(topic) {
  const role = (name) =>
    [topic.key.includes(name) && "key", topic.event_time === name && "event time"].filter(Boolean).join(", ");
  const rows = columnsOf(topic.schema).map(({ name, type }) =>
    el("tr", {}, el("td", {}, name), el("td", { class: "type" }, type), el("td", {}, role(name))),
  );
  const head = el("tr", {}, ...["Column", "Type", ""].map((text) => el("th", { scope: "col" }, text)));
  const table = el("table", { "aria-label": "Columns" }, el("thead", {}, head), el("tbody", {}, ...rows));
  return scrolling("Columns", table);
}

/** A command that sends an event that fits. */
export function example(topic) {
  const value = (type) => EXAMPLES.find(([pattern]) => pattern.test(type))?.[1] ?? "a";
  const row = columnsOf(topic.schema).map(
    ({ name, type }) => `${JSON.stringify(name)}: ${JSON.stringify(value(type))}`,
  );
  const url = `${location.origin}/topics/${encodeURIComponent(topic.name)}`;
  const data = `{${row.join(", ")}}`.replaceAll("'", `'\\''`);
  return command(`curl -X POST ${url} \\\n  -H 'Content-Type: application/json' \\\n  -d '${data}'`);
}
