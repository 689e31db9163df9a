// Starts the page: follows the status, and shows the page that the address names.

import { whenUnauthorized } from "./api.js";
import { askPage } from "./ask.js";
import { el, set } from "./dom.js";
import { count } from "./format.js";
import { overview } from "./overview.js";
import { problem } from "./parts.js";
import { follow, start, state } from "./state.js";
import { themeButton } from "./theme.js";
import { tokenPage } from "./token.js";
import { topicPage } from "./topic.js";
import { viewPage } from "./view.js";

const SAID = { connecting: "connecting …", live: "live", reconnecting: "reconnecting …", locked: "locked" };

const main = document.getElementById("main");
const parts = Object.fromEntries(
  ["connection", "database", "position", "version", "theme", "skip"].map((id) => [
    id,
    document.getElementById(id),
  ]),
);
const waiting = el("div", { class: "waiting" }, "Looking for the database …");
let page = null;
let locked = false;
let shown = null;

/** The page for an address such as `#/view/revenue`. */
function pageFor(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const [kind, name] = path.split(/\/(.*)/s);
  if (kind === "view" && name) return viewPage(decodeURIComponent(name));
  if (kind === "topic" && name) return topicPage(decodeURIComponent(name));
  if (kind === "ask") return askPage(new URLSearchParams(query));
  return overview();
}

function show(next) {
  page?.close?.();
  page = next;
  main.replaceChildren(page.element);
  update();
}

function route() {
  const first = shown === null;
  const hash = location.hash || "#/";
  if (hash === shown || locked) return;
  shown = hash;
  if (!state.status) return;
  show(pageFor(hash));
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === hash.split("?")[0];
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (first) return;
  window.scrollTo(0, 0);
  main.querySelector("h1")?.focus({ preventScroll: true });
}

function update() {
  set(parts.connection, SAID[state.connection]);
  parts.connection.dataset.state = state.connection;
  if (state.refused && !state.status) waiting.replaceChildren(problem(state.refused));
  if (!state.status) return;
  set(parts.database, state.status.database);
  set(parts.position, `position ${count(state.status.position)}`);
  set(parts.version, `Evert ${state.status.version}`);
  page?.update?.();
  document.title = page ? `${page.title()} · Evert` : "Evert";
}

follow(() => {
  if (state.status && !page) {
    shown = null;
    route();
  }
  update();
});
whenUnauthorized(() => {
  if (locked) return;
  locked = true;
  state.connection = "locked";
  show(tokenPage());
  main.querySelector("input").focus();
});
window.addEventListener("hashchange", route);
parts.skip.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
themeButton(parts.theme);
main.append(waiting);
start();
