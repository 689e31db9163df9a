// What people should know first: failed views, events set aside, and that nothing keeps the views.

import { el, keyed } from "./dom.js";
import { count } from "./format.js";
import { command, evert, problem, topicLink, viewLink } from "./parts.js";
import { state } from "./state.js";

const WHY = {
  stopped: "It shows the rows from before, and goes on when the cause is mended.",
  absent: "Its code cannot be imported where views are kept; it is read as it was.",
};

function ofView(view) {
  const { message, hint } = view.error ?? { message: WHY[view.state], hint: null };
  const title =
    view.state === "live"
      ? `${view.name} has a problem.`
      : `${view.name} is ${view.state}, at position ${count(view.position)}.`;
  return { link: viewLink(view.name), title, message, hint };
}

function ofTopic(topic) {
  return {
    link: topicLink(topic.name),
    kind: "warning",
    title: `${topic.name} sets more and more late events aside.`,
    message: `${count(topic.dropped)} of ${count(topic.late)} late events went to ${topic.name}.late.`,
    hint: "Most of them in the last hour. A longer lateness waits for them.",
  };
}

/** The notices of all views and topics, or of one of them. */
export function notices(name = null) {
  const element = el("div");

  function noticePart(item) {
    if (item.idle) return { element: idle() };
    const box = problem(item);
    const look = el("a", { href: item.link, "aria-label": `Look: ${item.title}` }, "Look");
    if (name === null) box.append(look);
    return { element: box };
  }

  function update() {
    const views = [...state.views.values()].filter(
      (view) => view.error || view.state === "stopped" || view.state === "absent",
    );
    const topics = [...state.topics.values()].filter((topic) => topic.rising);
    const about = (one) => name === null || one.name === name;
    const items = [...views.filter(about).map(ofView), ...topics.filter(about).map(ofTopic)];
    if (!state.status.running && state.views.size) items.push({ idle: true });
    keyed(element, items, (item) => JSON.stringify(item), noticePart);
  }
  return { element, update };
}

function idle() {
  const text = el("p", {}, "Views are not kept up to date: no process runs them. This starts one:");
  return el("div", { class: "notice quiet" }, el("div", {}, text, command(evert("run"))));
}
