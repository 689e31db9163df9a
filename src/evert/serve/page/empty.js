// The first steps, for a database that has no topics or no views yet.

import { el } from "./dom.js";
import { command, evert } from "./parts.js";
import { quoted } from "./sql.js";
import { state } from "./state.js";

const step = (text, ...commands) => el("li", {}, el("p", {}, text), ...commands.map(command));

export function firstSteps() {
  const [topic] = state.topics.keys();
  const view = topic
    ? `"CREATE MATERIALIZED VIEW all_of_${topic.replace(/\W/g, "_")} AS SELECT count(*) AS n FROM ${quoted(topic)}"`
    : `"CREATE MATERIALIZED VIEW per_url AS SELECT url, count(*) AS n FROM clicks GROUP BY url"`;
  const steps = [
    step(
      "Make a topic: a stream of facts, or a table of rows that change.",
      evert("topics create clicks", `"session STRING, url STRING, at TIMESTAMP"`),
    ),
    step(
      "Put an event into it.",
      `echo '{"session": "a", "url": "/", "at": "2026-05-04T12:00:00Z"}' | ${evert("append clicks")}`,
    ),
    step(
      "Say what you want to know, in SQL; it is kept up to date from then on.",
      evert("sql", view.replaceAll("`", "\\`")),
    ),
    step("Keep views up to date, if this server does not.", evert("run")),
  ];
  const lead = topic
    ? "A view is a question whose answer is always there. This page shows it as soon as you have defined it."
    : "A few commands, and this page begins to move. There is no need to reload it.";
  return el(
    "section",
    { class: "empty" },
    el("p", { class: "lead" }, lead),
    el("ol", {}, ...(topic ? steps.slice(2) : steps)),
  );
}
