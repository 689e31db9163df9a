// The first page: all topics and views as a graph, and each view as a card.

import { card } from "./card.js";
import { el, keyed, set } from "./dom.js";
import { firstSteps } from "./empty.js";
import { count, list, perSecond, plural } from "./format.js";
import { graph } from "./graph.js";
import { notices } from "./notices.js";
import { rate, state } from "./state.js";

/** All of it in a sentence. */
function summary() {
  const views = [...state.views.values()];
  const topics = plural(state.topics.size, "topic");
  if (!views.length)
    return state.topics.size ? `${topics}, and no view yet` : "Nothing here yet. That is easily changed.";
  const others = Object.entries(Object.groupBy(views, (view) => view.state)).filter(
    ([name]) => name !== "live",
  );
  const states = others.map(([name, some]) => `${count(some.length)} ${name}`);
  const calm = state.status.running ? (views.length === 1 ? "live" : "all live") : "not kept up to date";
  return `${plural(views.length, "view")} over ${topics}, ${states.length ? list(states) : calm}`;
}

function stream() {
  const flow = [...state.topics.keys()].reduce((sum, name) => sum + rate(name), 0);
  const topics = [...state.topics.values()];
  const total = (name) => topics.reduce((sum, topic) => sum + topic[name], 0);
  const late = total("late") ? `, ${plural(total("late"), "event")} came late` : "";
  const dropped = total("dropped") ? `, ${count(total("dropped"))} of them set aside` : "";
  return `${perSecond(flow)} come in${late}${dropped}.`;
}

export function overview() {
  const title = el("h1", { tabindex: "-1" });
  const lead = el("p", { class: "lead" });
  const warnings = notices();
  const picture = graph();
  const heading = el("h2", {}, "Views");
  const cards = el("div", { class: "cards" });
  const steps = el("div");
  const element = el(
    "div",
    { class: "overview" },
    title,
    lead,
    warnings.element,
    picture.element,
    steps,
    heading,
    cards,
  );
  let missing = null;

  function update() {
    set(title, summary());
    set(lead, state.topics.size ? stream() : "");
    warnings.update();
    picture.element.hidden = !state.topics.size;
    picture.update();
    heading.hidden = !state.views.size;
    keyed(cards, [...state.views.values()], (view) => view.name, card);
    const next = state.views.size ? null : [...state.topics.keys()].join();
    if (next !== missing) steps.replaceChildren(...(next === null ? [] : [firstSteps()]));
    missing = next;
  }

  function close() {
    picture.close();
    keyed(cards, [], (view) => view.name, card);
  }
  return { element, title: () => state.status?.database ?? "", update, close };
}
