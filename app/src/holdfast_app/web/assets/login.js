// @ts-check
// Logging in to an agent: the ways it offers, and what to do where the page cannot do it.
import { make } from "./fragments.js";
import { say, toCopy } from "./messages.js";
import { post, Refused } from "./server.js";

/** @typedef {import("./server.js").Login} Login */
/** @typedef {import("./server.js").Way} Way */

/**
 * Where something was refused for want of a login, let the user log in and do it again.
 * @param {unknown} problem @param {() => void} again
 * @returns {boolean} whether that was the reason
 */
export function offerLogin(problem, again) {
  if (!(problem instanceof Refused) || !problem.login) return false;
  openLogin(problem.login, problem.message, again);
  return true;
}

/** @param {Login} login @param {string} why @param {() => void} again */
export function openLogin(login, why, again) {
  const error = make("p", { class: "error", role: "alert" });
  const close = make("button", { type: "button" }, "Close");
  const retry = make("button", { type: "button", class: "primary" }, "Try again");
  const isElsewhere = Boolean(login.otherwise) || login.ways.some(({ instead }) => instead);
  const dialog = /** @type {HTMLDialogElement} */ (make("dialog", { "aria-labelledby": "login-heading" },
    make("h2", { id: "login-heading" }, `Log in to ${login.title}`),
    make("p", { class: "about" }, why),
    ...login.ways.map((way) => wayIn(login, way, error, () => {
      dialog.close();
      say(`You are logged in: ${way.name}.`);
      again();
    })),
    ...(login.otherwise ? [make("p", {}, login.otherwise)] : []),
    error, make("div", { class: "actions" }, close, ...(isElsewhere ? [retry] : []))));
  retry.addEventListener("click", () => {
    dialog.close();
    again();
  });
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {Login} login @param {Way} way @param {HTMLElement} error @param {() => void} done */
function wayIn(login, way, error, done) {
  const about = make("p", { class: "about" }, way.instead || way.description);
  if (way.instead) {
    return make("section", { class: "way" }, make("h3", {}, way.name), about, ...(way.command ? [toCopy(way.command, "The command")] : []));
  }
  const button = /** @type {HTMLButtonElement} */ (make("button", { type: "button", class: "primary" }, way.name));
  button.addEventListener("click", () => {
    error.textContent = "";
    button.disabled = true;
    button.textContent = "Logging in…";
    post("/login", { agent: login.agent, method: way.id }).then(done, (problem) => {
      error.textContent = problem.message;
    }).finally(() => {
      button.disabled = false;
      button.textContent = way.name;
    });
  });
  return make("section", { class: "way" }, button, about);
}
