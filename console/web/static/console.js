// What pages do by themselves: change the theme, look again, find the search by "/".
// Without this file all pages work.
"use strict";

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});

document.addEventListener("keydown", (event) => {
  const busy = event.target.closest("input, textarea, select");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || busy) return;
  const search = document.querySelector("[data-search]");
  if (search) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});

// A page that is looked at, and in which nothing is being done, is shown as it is now.
const isIdle = (main) =>
  document.visibilityState === "visible" &&
  !main.contains(document.activeElement.closest("main a, main input, main button, main summary")) &&
  !main.querySelector("details[open]") &&
  String(getSelection()) === "";

const main = document.getElementById("main");
const everySeconds = Number(main.dataset.live);
const isWaiting = () => document.querySelector("main .wait") !== null;
let looked = Date.now();
if (everySeconds) {
  setInterval(async () => {
    const due = isWaiting() ? 1000 : everySeconds * 1000;
    const now = document.getElementById("main");
    if (Date.now() - looked < due || !isIdle(now)) return;
    looked = Date.now();
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = page.getElementById("main");
      if (next && isIdle(now)) now.replaceWith(next);
    } catch {
      // The server is gone, or comes back: the page stays as it is.
    }
  }, 1000);
}
