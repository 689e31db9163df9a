// The form for a token, where the server wants one.

import { token } from "./api.js";
import { el } from "./dom.js";
import { problem } from "./parts.js";

export function tokenPage() {
  const box = el("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const form = el(
    "form",
    { class: "token" },
    el("label", { for: "token" }, "Token"),
    box,
    el("button", { class: "primary", type: "submit" }, "Open"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    token.set(box.value.trim());
    location.reload();
  });
  const said = "The token was not accepted.";
  const hint = "It may have been revoked: evert tokens list shows those that there are.";
  const wrong = token.get() ? problem({ message: said, hint }) : null;
  const lead = el(
    "p",
    { class: "lead" },
    "This database is read with a token. It is kept until you close this tab.",
  );
  const how = el("code", {}, "evert tokens create NAME --read '*'");
  const help = el("p", { class: "caption" }, "An administrator makes one with ", how, ".");
  const title = el("h1", { tabindex: "-1" }, "Who is there?");
  return { element: el("div", { class: "page narrow" }, title, lead, wrong, form, help), title: () => "Token" };
}
