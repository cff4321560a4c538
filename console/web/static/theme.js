// Before anything is drawn: the theme that was chosen last, if one was.
"use strict";
{
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
}
