// @ts-check
// What can be done with a session, in a menu; and dialogs that ask for a text.
import { byId, make } from "./fragments.js";
import { say, sayError } from "./messages.js";
import { post } from "./server.js";
import { openSharing } from "./share.js";

/** @typedef {{ label: string, run: () => unknown, danger?: boolean }} Item */
/** @typedef {{ id: string, title: string, agent: string, archived: boolean, others: string[] }} Session */

/**
 * Open a menu at a button.
 * @param {HTMLElement} button
 * @param {Item[]} items
 */
export function openMenu(button, items) {
  document.querySelector(".menu")?.remove();
  const menu = make("div", { class: "menu", role: "menu", popover: "auto" });
  for (const item of items) {
    const entry = make("button", { type: "button", role: "menuitem", ...(item.danger ? { class: "danger" } : {}) }, item.label);
    entry.addEventListener("click", () => {
      menu.hidePopover();
      button.focus();
      Promise.resolve(item.run()).catch(sayError);
    });
    menu.append(entry);
  }
  menu.addEventListener("keydown", (event) => moveInMenu(menu, event));
  menu.addEventListener("toggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState === "closed") {
      button.setAttribute("aria-expanded", "false");
      menu.remove();
    }
  });
  byId("main").append(menu); // not beside the button: what is there may be drawn anew while the menu is open
  button.setAttribute("aria-expanded", "true");
  menu.showPopover();
  const at = button.getBoundingClientRect();
  menu.style.insetBlockStart = `${Math.max(8, Math.min(at.bottom + 4, innerHeight - menu.offsetHeight - 8))}px`;
  menu.style.insetInlineStart = `${Math.max(8, at.right - menu.offsetWidth)}px`;
  /** @type {HTMLElement} */ (menu.firstElementChild).focus();
}

/** @param {HTMLElement} menu @param {KeyboardEvent} event */
function moveInMenu(menu, event) {
  const items = /** @type {HTMLElement[]} */ (Array.from(menu.children));
  const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
  const next = /** @type {Record<string, number>} */ (steps)[event.key];
  if (next === undefined) return;
  event.preventDefault();
  items[(next + items.length) % items.length].focus();
}

/**
 * Ask for a text, or for one of several.
 * @param {string} heading
 * @param {string} value
 * @param {string[]} [choices]
 * @returns {Promise<string | null>}
 */
export function askFor(heading, value, choices) {
  const field = choices
    ? make("select", { name: "value" }, ...choices.map((choice) => make("option", { value: choice }, choice)))
    : make("input", { name: "value", value, autocomplete: "off" });
  field.setAttribute("aria-label", heading);
  const cancel = make("button", { type: "button" }, "Cancel");
  const save = make("button", { type: "submit", class: "primary" }, "OK");
  const form = make("form", { method: "dialog" }, make("h2", { id: "ask-heading" }, heading), field,
    make("div", { class: "actions" }, cancel, save));
  const dialog = /** @type {HTMLDialogElement} */ (make("dialog", { "aria-labelledby": "ask-heading" }, form));
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  if (field instanceof HTMLInputElement) field.select();
  return new Promise((resolve) => {
    let answer = /** @type {string | null} */ (null);
    cancel.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", () => {
      answer = /** @type {HTMLInputElement} */ (field).value;
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
  });
}

/**
 * Return what can be done with a session.
 * @param {Session} session
 * @param {{ renamed: (title: string) => void, removed: () => void, restored: () => void }} then
 * @returns {Item[]}
 */
export function sessionItems(session, then) {
  const base = `/sessions/${session.id}`;
  const download = (/** @type {string} */ format) => location.assign(`${base}/export?format=${format}`);
  /** @type {Item[]} */
  const items = [
    { label: "Rename…", run: () => rename(session, then.renamed) },
    { label: "Fork", run: async () => location.assign((await post(`${base}/fork`)).href) },
    { label: "Share…", run: () => openSharing(session.id) },
    { label: "Export as HTML", run: () => download("html") },
    { label: "Export as Markdown", run: () => download("markdown") },
    { label: "Export as JSON", run: () => download("json") },
    { label: session.archived ? "Take out of the archive" : "Archive", run: () => archive(session, then) },
    { label: "Delete", danger: true, run: () => remove(session, then) },
  ];
  if (session.others.length) items.splice(2, 0, { label: "Hand to another agent…", run: () => handOver(session) });
  return items;
}

/** @param {Session} session @param {(title: string) => void} renamed */
async function rename(session, renamed) {
  const title = await askFor("Rename the session", session.title);
  if (title === null || title === session.title) return;
  await post(`/sessions/${session.id}/rename`, { title });
  session.title = title;
  renamed(title);
}

/** @param {Session} session */
async function handOver(session) {
  const agent = await askFor("Hand the session to", "", session.others);
  if (!agent) return;
  await post(`/sessions/${session.id}/hand-over`, { agent });
  location.reload();
}

/** @param {Session} session @param {{ removed: () => void, restored: () => void }} then */
async function archive(session, then) {
  const { id, archived } = session;
  await post(`/sessions/${id}/${archived ? "unarchive" : "archive"}`);
  tellUndo({ text: archived ? "It is among the active sessions again." : "Archived.", until: Date.now() + 6_000,
    undo: `/sessions/${id}/${archived ? "archive" : "unarchive"}` }, then);
}

/** @param {Session} session @param {{ removed: () => void, restored: () => void }} then */
async function remove(session, then) {
  const { undo } = await post(`/sessions/${session.id}/delete`);
  tellUndo({ text: `Deleted “${session.title}”.`, until: Date.now() + (undo - 1) * 1000, undo: `/sessions/${session.id}/undelete` }, then);
}

/** @typedef {{ text: string, until: number, undo: string }} Undo */

/** Tell what was done and offer to undo it, here and on the page that comes next. @param {Undo} done @param {{ removed: () => void, restored: () => void }} then */
function tellUndo(done, then) {
  sessionStorage.setItem("undo", JSON.stringify(done));
  offer(done, then.restored);
  then.removed();
}

/** Offer to undo what was done on the page before, as long as there is time. */
export function offerUndo() {
  const done = /** @type {Undo | null} */ (JSON.parse(sessionStorage.getItem("undo") ?? "null"));
  sessionStorage.removeItem("undo");
  if (done && done.until > Date.now()) offer(done, () => location.reload());
}

/** @param {Undo} done @param {() => void} restored */
function offer({ text, until, undo }, restored) {
  say(text, {
    seconds: (until - Date.now()) / 1000,
    action: "Undo",
    onAction: () => {
      sessionStorage.removeItem("undo");
      post(undo).then((answer) => {
        if (answer.undone ?? true) restored();
        else say("It was too late.", { severity: "error" });
      }, sayError);
    },
  });
}
