// @ts-check
// Messages for a moment, with a way back where there is one; and what is told in words: times.
import { byId, make } from "./fragments.js";

/**
 * Show a message.
 * @param {string} text
 * @param {{ severity?: string, seconds?: number, action?: string, onAction?: () => void }} [how]
 */
export function say(text, { severity = "info", seconds = 6, action = "", onAction } = {}) {
  const box = make("div", { class: `message ${severity}` }, make("span", {}, text));
  const leave = () => box.remove();
  if (action && onAction) {
    const button = make("button", { type: "button" }, action);
    button.addEventListener("click", () => {
      leave();
      onAction();
    });
    box.append(button);
  }
  const close = make("button", { type: "button", class: "quiet", "aria-label": "Close this message" }, "×");
  close.addEventListener("click", leave);
  box.append(close);
  const place = byId("messages");
  while (place.childElementCount > 3) place.firstElementChild?.remove();
  place.append(box);
  setTimeout(leave, seconds * 1000);
  return leave;
}

/** @param {unknown} error */
export function sayError(error) {
  say(error instanceof Error ? error.message : String(error), { severity: "error", seconds: 10 });
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

/** @param {Date} at @param {number} now */
function inWords(at, now) {
  const seconds = (at.getTime() - now) / 1000;
  if (seconds > -45) return "now";
  if (seconds > -3600) return relative.format(Math.round(seconds / 60), "minute");
  if (seconds > -86400) return relative.format(Math.round(seconds / 3600), "hour");
  if (seconds > -604800) return relative.format(Math.round(seconds / 86400), "day");
  return at.getFullYear() === new Date(now).getFullYear() ? day.format(at) : year.format(at);
}

/** Say all times of a part of the page as people do. @param {ParentNode} [root] */
export function sayTimes(root = document) {
  const now = Date.now();
  for (const time of root.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const words = inWords(at, now);
    if (time.textContent !== words) time.textContent = words;
    if (!time.title) time.title = whole.format(at);
  }
}

setInterval(() => {
  if (!document.hidden) sayTimes();
}, 30_000);
