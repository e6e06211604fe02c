// @ts-check
// The library: rows that come as one scrolls, search as one types, all of it by keyboard.
import { byId, first, fragment, morph } from "./fragments.js";
import { offerLogin } from "./login.js";
import { offerUndo, openMenu, sessionItems } from "./menu.js";
import { sayError, sayTimes } from "./messages.js";
import { noteWaiting, offerNotifications } from "./notify.js";
import { Feed, getHtml, post } from "./server.js";

const rows = document.getElementById("rows");
if (rows) start(rows);
sayTimes(document);
document.dispatchEvent(new Event("holdfast:ready"));

/** @param {HTMLElement} rows */
function start(rows) {
  const search = /** @type {HTMLInputElement} */ (byId("search"));
  const filters = /** @type {HTMLFormElement} */ (byId("filters"));
  loadAsOneScrolls(rows);
  searchAsOneTypes(rows, search);
  filters.addEventListener("change", () => filters.requestSubmit());
  filters.addEventListener("formdata", leaveOutEmpty);
  rows.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("[data-menu]");
    if (button instanceof HTMLElement) openRowMenu(button);
    const more = /** @type {Element} */ (event.target).closest("[data-more]");
    if (!(more instanceof HTMLElement)) return;
    event.preventDefault(); // they were not loaded as one came near: there was no network
    loadMore(more).catch(sayError);
  });
  addEventListener("keydown", (event) => onKey(event, rows, search));
  offerNewSession();
  offerUndo();
  offerNotifications(document.getElementById("notify"));
  new Feed(() => "/live", (message) => takeRows(rows, message), () => {});
}

/** @param {FormDataEvent} event */
function leaveOutEmpty({ formData }) {
  for (const [name, value] of Array.from(formData)) {
    if (!value) formData.delete(name);
  }
}

// Rows

/** @param {HTMLElement} rows */
function loadAsOneScrolls(rows) {
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      loadMore(/** @type {HTMLElement} */ (target)).catch(sayError);
    }
  }, { rootMargin: "1200px" });
  const watch = () => rows.querySelectorAll("[data-more]").forEach((more) => seen.observe(more));
  new MutationObserver(watch).observe(rows, { childList: true });
  watch();
}

/** @param {HTMLElement} more */
async function loadMore(more) {
  const { html } = await getHtml(more.dataset.more ?? "");
  const found = fragment(html);
  sayTimes(found);
  more.replaceWith(found);
}

/** @param {HTMLElement} rows @param {any} message */
function takeRows(rows, message) {
  if (message.type !== "rows" || rows.dataset.searching || location.search) return;
  let moved = /** @type {Element | null} */ (null);
  for (const [id, html] of message.rows) {
    const now = first(html);
    sayTimes(now);
    noteWaiting(id, now.dataset.title ?? "", now.dataset.state === "requires_action").catch(sayError);
    const old = document.getElementById(`row-${id}`);
    if (old && old.querySelector("time")?.dateTime === now.querySelector("time")?.dateTime) morph(old, now);
    else if (!old?.contains(document.activeElement)) {
      old?.remove();
      if (moved) moved.after(now);
      else rows.prepend(now);
      moved = now;
    }
  }
  tellWaiting(rows);
}

/** @param {HTMLElement} rows */
function tellWaiting(rows) {
  const waiting = rows.querySelectorAll("[data-state=requires_action]").length;
  document.title = `${waiting ? `(${waiting}) ` : ""}Sessions · Holdfast`;
}

// Search

/** Put what is looked for into the address. @param {string} words */
function remember(words) {
  const query = new URLSearchParams(location.search);
  if (words !== (query.get("q") ?? "")) query.delete("places"); // more of them were asked for other words
  if (words) query.set("q", words);
  else query.delete("q");
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
}

/** @param {HTMLElement} rows @param {HTMLInputElement} search */
function searchAsOneTypes(rows, search) {
  let listed = /** @type {Node[] | null} */ (null);
  let running = new AbortController();
  let timer = 0;
  const show = async () => {
    running.abort();
    running = new AbortController();
    const words = search.value.trim();
    if (!words) {
      if (listed) rows.replaceChildren(...listed);
      listed = null;
      delete rows.dataset.searching;
      byId("found").textContent = "";
      remember("");
      return;
    }
    remember(words); // so that one comes back to what was found
    const query = new URLSearchParams(location.search);
    try {
      const { html } = await getHtml(`/search?${query}`, running.signal);
      listed ??= Array.from(rows.childNodes);
      rows.dataset.searching = "true";
      rows.replaceChildren(fragment(html));
      sayTimes(rows);
      const found = /** @type {HTMLElement | null} */ (rows.querySelector("[data-found]"));
      byId("found").textContent = found?.dataset.found ?? "";
    } catch (error) {
      if (!(error instanceof DOMException)) sayError(error);
    }
  };
  search.form?.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 120);
  });
  search.value ||= new URLSearchParams(location.search).get("q") ?? ""; // unless one has begun to write already
  if (search.value) show();
}

// What can be done with one

/** @param {HTMLElement} button */
function openRowMenu(button) {
  const row = /** @type {HTMLElement} */ (button.closest("li"));
  const { id = "", title = "", agent = "" } = row.dataset;
  const session = { id, title, agent, archived: "archived" in row.dataset, others: [] };
  const next = row.nextSibling;
  openMenu(button, sessionItems(session, {
    renamed: (now) => {
      row.dataset.title = now;
      const shown = row.querySelector(".title");
      if (shown) shown.textContent = now || "Session without a title";
    },
    removed: () => {
      const neighbour = row.nextElementSibling ?? row.previousElementSibling;
      row.remove();
      /** @type {HTMLElement | null} */ (neighbour?.querySelector("a.row") ?? null)?.focus();
    },
    restored: () => {
      if (next?.isConnected) next.before(row);
      else byId("rows").prepend(row);
    },
  }));
}

// Keys

/** @param {KeyboardEvent} event @param {HTMLElement} rows @param {HTMLInputElement} search */
function onKey(event, rows, search) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open], .menu")) return;
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  const links = /** @type {HTMLElement[]} */ (Array.from(rows.querySelectorAll("a.row")));
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  if (event.key === "Escape" && event.target === search) {
    search.value = "";
    search.dispatchEvent(new Event("input"));
    search.blur();
  } else if (event.key === "ArrowDown" && (!typing || event.target === search)) links[Math.min(at + 1, links.length - 1)]?.focus();
  else if (typing) return;
  else if (event.key === "ArrowUp") links[Math.max(at - 1, 0)]?.focus();
  else if (event.key === "j") links[Math.min(at + 1, links.length - 1)]?.focus();
  else if (event.key === "k") links[Math.max(at - 1, 0)]?.focus();
  else if (event.key === "/") search.focus();
  else if (event.key === "n") document.getElementById("new")?.click();
  else if (event.key === "m" && at >= 0) /** @type {HTMLElement} */ (links[at].parentElement?.querySelector("[data-menu]"))?.click();
  else return;
  event.preventDefault();
}

// A new session

function offerNewSession() {
  const dialog = document.getElementById("new-session");
  if (!(dialog instanceof HTMLDialogElement)) return;
  const form = /** @type {HTMLFormElement} */ (dialog.querySelector("form"));
  const error = /** @type {HTMLElement} */ (form.querySelector(".error"));
  byId("new").addEventListener("click", () => dialog.showModal());
  form.querySelector("[data-close]")?.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    error.textContent = "";
    const button = /** @type {HTMLButtonElement} */ (form.querySelector("[type=submit]"));
    button.disabled = true;
    try {
      const made = await post("/sessions", Object.fromEntries(new FormData(form)));
      location.assign(made.href);
    } catch (problem) {
      if (offerLogin(problem, () => form.requestSubmit())) return;
      error.textContent = problem instanceof Error ? problem.message : String(problem);
    } finally {
      button.disabled = false;
    }
  });
}
