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

/** By keyboard, what a message offers to undo is undone with `z`: nobody has to find the way to its button in time. */
addEventListener("keydown", (event) => {
  const typing = event.target instanceof Element && event.target.closest("input, textarea, select, dialog");
  if (event.key !== "z" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const offered = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".message button:not(.quiet)"));
  offered[offered.length - 1]?.click();
});

/** Put a text where one can paste it from. @param {string} text @param {string} told */
export async function copy(text, told) {
  if (!navigator.clipboard) throw new Error("Your browser lets nothing be copied from here: the page has no TLS.");
  await navigator.clipboard.writeText(text);
  say(told, { seconds: 3 });
}

/** Return a field with a text, and a button that copies it. @param {string} text @param {string} name */
export function toCopy(text, name) {
  const field = /** @type {HTMLInputElement} */ (make("input", { readonly: "", value: text, "aria-label": name }));
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", () => {
    field.select();
    copy(text, `${name} is copied.`).catch(sayError);
  });
  return make("div", { class: "copy" }, field, button);
}

/** @param {unknown} error */
export function sayError(error) {
  say(error instanceof Error ? error.message : String(error), { severity: "error", seconds: 10 });
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

/** @param {Date} at @param {Date} now */
function onTheDay(at, now) {
  return (at.getFullYear() === now.getFullYear() ? day : year).format(at);
}

/** How long ago something was. @param {Date} at @param {Date} now */
function inWords(at, now) {
  const seconds = (at.getTime() - now.getTime()) / 1000;
  if (seconds > -45) return "now";
  if (seconds > -3600) return relative.format(Math.round(seconds / 60), "minute");
  if (seconds > -86400) return relative.format(Math.round(seconds / 3600), "hour");
  if (seconds > -604800) return relative.format(Math.round(seconds / 86400), "day");
  return onTheDay(at, now);
}

/** When an entry began: the time of day, and the day where it is another. @param {Date} at @param {Date} now */
function onTheClock(at, now) {
  const isToday = at.toDateString() === now.toDateString();
  return isToday ? clock.format(at) : `${onTheDay(at, now)}, ${clock.format(at)}`;
}

/**
 * Say all times of a part of the page as people do, in their own zone.
 * @template {ParentNode} T
 * @param {T} root
 * @returns {T} the part
 */
export function sayTimes(root) {
  const now = new Date();
  for (const time of root.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const words = time.className === "at" ? onTheClock(at, now) : inWords(at, now);
    if (time.textContent !== words) time.textContent = words;
    if (!time.title) time.title = whole.format(at);
  }
  return root;
}

setInterval(() => {
  if (!document.hidden) sayTimes(document);
}, 30_000);
