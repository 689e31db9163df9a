// The page for questions: a SELECT over topics and views, asked once.

import { post } from "./api.js";
import { orderOf, timeOf } from "./columns.js";
import { el, set } from "./dom.js";
import { count, plural, seconds } from "./format.js";
import { measured } from "./measured.js";
import { problem, scrolling } from "./parts.js";
import { identified, ordered } from "./rows.js";
import { orderText, quoted } from "./sql.js";
import { state } from "./state.js";
import { table } from "./table.js";

const MOST = 1_000;
const KEPT = "evert.sql";

/** Queries that make sense here: the first rows of some views, and how much is in a topic. */
function examples() {
  const ofViews = [...state.views.values()]
    .filter((view) => view.columns.length && view.emit !== "late")
    .slice(0, 3)
    .map((view) => {
      const order = orderOf(view.columns, view.key);
      const which = timeOf(view.columns) ? "newest" : order.down ? "largest" : "some";
      const by = `ORDER BY ${orderText(order, view.columns)}`;
      return {
        title: `${which} of ${view.name}`,
        text: `SELECT *\nFROM ${quoted(view.name)}\n${by}\nLIMIT 10`,
      };
    });
  const ofTopics = [...state.topics.keys()].slice(0, 1).map((name) => ({
    title: `how many ${name}`,
    text: `SELECT count(*) AS n, max(_ingested_at) AS last\nFROM ${quoted(name)}`,
  }));
  return [...ofViews, ...ofTopics];
}

export function askPage(parameters) {
  const kept = parameters.get("sql") ?? localStorage.getItem(KEPT);
  const box = el("textarea", {
    id: "sql",
    "data-testid": "ask-sql",
    rows: "7",
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
  });
  const button = el("button", { type: "submit", class: "primary", "data-testid": "ask-run" }, "Ask");
  const keys = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘ Enter" : "Ctrl Enter";
  const said = el("p", { class: "caption", role: "status" });
  const offers = el("div", { class: "examples", role: "group", "aria-label": "Examples" });
  const result = el("div", { class: "result", "data-testid": "ask-result" });
  const form = el(
    "form",
    { class: "ask" },
    el("label", { for: "sql" }, "A SELECT over topics and views"),
    box,
    el("div", { class: "ask-row" }, button, el("kbd", {}, keys), said),
    offers,
  );
  const about = "For the question that is asked once. All of it is seen at one position.";
  const lead = el("p", { class: "lead" }, about);
  const element = el("div", { class: "page" }, el("h1", { tabindex: "-1" }, "Ask"), lead, form, result);
  let asking = null;
  let picture = null;
  let offered = "";

  function answer({ columns, rows, position, seconds: time }) {
    set(said, `${plural(rows.length, "row")} at position ${count(position)}, in ${seconds(time)}`);
    const byId = identified(rows, null);
    let order = null;
    const sort = (column) => {
      order = { column, down: order?.column === column ? !order.down : true };
      draw();
    };
    const list = table({ label: "Answer", sort });
    const draw = () => list.update({ columns, rows: order ? ordered(byId, columns, order) : [...byId], order });
    draw();
    picture = measured();
    const scroll = scrolling("Answer", list.element);
    result.replaceChildren(picture.element, rows.length ? scroll : el("p", { class: "none" }, "No rows."));
    picture.update({ columns, key: null }, byId);
  }

  async function run() {
    const sql = box.value.trim();
    if (!sql) return;
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    localStorage.setItem(KEPT, sql);
    history.replaceState(null, "", `#/ask?${new URLSearchParams({ sql })}`);
    set(said, "asking …");
    picture?.close();
    try {
      answer(await post("/ask", { sql, max_rows: MOST }, { signal }));
    } catch (error) {
      if (signal.aborted) return;
      set(said, "");
      const hint = "The page finds it again by itself; then ask again.";
      const gone = error.status ? error : { message: "The server did not answer.", hint };
      result.replaceChildren(problem(gone));
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run();
  });

  function offer({ title, text }) {
    const take = () => {
      box.value = text;
      run();
    };
    return el("button", { type: "button", class: "example", click: take }, title);
  }

  function update() {
    const next = examples();
    if (!box.value && box !== document.activeElement) box.value = kept ?? next[0]?.text ?? "";
    if (JSON.stringify(next) === offered) return;
    offered = JSON.stringify(next);
    offers.replaceChildren(...next.map(offer));
  }

  function close() {
    asking?.abort();
    picture?.close();
  }
  return { element, title: () => "Ask", update, close };
}
