// @ts-check
// The page as an app: a worker that keeps its files, and notifications when a session waits for the user.
import { script } from "./fragments.js";
import { say } from "./messages.js";

/** @type {Set<string>} the sessions that wait, as far as was told */
const waiting = new Set();

/** @returns {Promise<ServiceWorkerRegistration | null>} */
const worker = (async () => {
  try {
    return await navigator.serviceWorker?.register(script("/worker.js")) ?? null;
  } catch {
    return null; // a private window, or a browser without workers: all else works
  }
})();

/** Let a button ask for notifications; it is there only where the browser can give them. @param {HTMLElement | null} button */
export function offerNotifications(button) {
  if (!button) return;
  button.hidden = !("Notification" in window) || Notification.permission !== "default";
  button.addEventListener("click", async () => {
    const answer = await Notification.requestPermission();
    button.hidden = answer !== "default";
    say(answer === "granted" ? "You will be told when a session waits for you, as long as a tab of Holdfast is open."
      : "Your browser does not allow notifications from here.");
  });
}

/**
 * Note whether a session waits; tell the user of one that begins to, where no tab of it is looked at.
 * @param {string} id @param {string} title @param {boolean} waits
 */
export async function noteWaiting(id, title, waits) {
  if (!waits) {
    if (waiting.delete(id)) for (const shown of await (await worker)?.getNotifications({ tag: id }) ?? []) shown.close();
    return;
  }
  if (waiting.has(id)) return;
  waiting.add(id);
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const how = { body: "It asks for your permission or an answer.", tag: id, data: { href: `/sessions/${id}` } };
  await (await worker)?.showNotification(`${title} waits for you`, how);
}
