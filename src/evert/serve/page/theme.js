// Light or dark: what the system says, until the button is used; that is remembered.

const root = document.documentElement;
const system = window.matchMedia("(prefers-color-scheme: dark)");

const chosen = () => root.dataset.theme ?? (system.matches ? "dark" : "light");

export function themeButton(button) {
  const show = () => button.setAttribute("aria-pressed", String(chosen() === "dark"));
  button.addEventListener("click", () => {
    root.dataset.theme = chosen() === "dark" ? "light" : "dark";
    localStorage.setItem("evert.theme", root.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  show();
}

const remembered = localStorage.getItem("evert.theme");
if (remembered) root.dataset.theme = remembered;
