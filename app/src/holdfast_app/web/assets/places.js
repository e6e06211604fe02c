// @ts-check
// Finding one's way in a session: the index of prompts, from prompt to prompt, words, and reading without the tools.
import { byId, fragment } from "./fragments.js";
import { sayError, sayTimes } from "./messages.js";
import { getHtml } from "./server.js";

/** @typedef {import("./entries.js").Entries} Entries */

export class Index {
  /** @param {string} id @param {Entries} entries */
  constructor(id, entries) {
    this.id = id;
    this.entries = entries;
    this.panel = byId("index");
    this.list = byId("index-list");
    this.find = /** @type {HTMLInputElement} */ (byId("find"));
    this.outdated = true;
    this.running = new AbortController();
    this.searched = "";
    byId("open-index").addEventListener("click", () => this.toggle());
    byId("open-find").addEventListener("click", () => this.openFind());
    byId("previous-prompt").addEventListener("click", () => this.step(-1).catch(sayError));
    byId("next-prompt").addEventListener("click", () => this.step(1).catch(sayError));
    this.panel.querySelector("[data-close]")?.addEventListener("click", () => this.toggle(false));
    this.list.addEventListener("click", (event) => this.choose(event));
    this.panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault(); // it is not meant for the agent
      this.toggle(false);
    });
    let timer = 0;
    this.find.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.search().catch(sayError), 150);
    });
    this.find.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.leaveSearch();
    });
    this.find.form?.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      this.toNextFound().catch(sayError);
    });
    this.setReading();
  }

  /** @param {boolean} [open] */
  toggle(open = Boolean(this.panel.hidden)) {
    this.panel.hidden = !open;
    document.body.classList.toggle("with-index", open);
    byId("open-index").setAttribute("aria-expanded", String(open));
    if (open) this.showPrompts().catch(sayError);
    else byId("open-index").focus();
  }

  /** Let the user look for words; where there is little room the field for them comes only now. */
  openFind() {
    this.find.closest(".bar")?.classList.add("finding");
    this.find.focus();
  }

  async load() {
    const { html } = await getHtml(`/sessions/${this.id}/prompts`);
    this.outdated = false;
    this.prompts = html;
    const found = fragment(html).querySelectorAll("a[data-line]");
    this.lines = Array.from(found, (link) => Number(/** @type {HTMLElement} */ (link).dataset.line));
  }

  async showPrompts() {
    if (this.outdated) await this.load();
    this.list.replaceChildren(sayTimes(fragment(this.prompts ?? "")));
    this.sayHeading();
    /** @type {HTMLElement | null} */ (this.list.querySelector("a"))?.focus();
  }

  /** Say what the server calls what it has listed. */
  sayHeading() {
    const found = /** @type {HTMLElement | null} */ (this.list.querySelector("[data-found]"));
    byId("index-heading").textContent = found?.dataset.found ?? "";
  }

  /** Go to the next prompt, or the one before. @param {number} by */
  async step(by) {
    if (this.outdated || !this.lines) await this.load();
    const lines = this.lines ?? [];
    const here = Number(this.entries.visible()?.dataset.line ?? Infinity);
    const next = by > 0 ? lines.find((line) => line > here) : lines.filter((line) => line < here).pop();
    if (next === undefined) {
      if (by > 0) this.entries.toEnd();
      return;
    }
    await this.entries.goTo(next);
  }

  async search() {
    const words = this.find.value.trim();
    if (!words) return this.leaveSearch();
    this.running.abort();
    this.running = new AbortController();
    try {
      const { html } = await getHtml(`/sessions/${this.id}/find?q=${encodeURIComponent(words)}`, this.running.signal);
      this.list.replaceChildren(fragment(html));
      this.searched = words;
      this.sayHeading();
      this.panel.hidden = false;
      document.body.classList.add("with-index");
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
    }
  }

  /** Go to the next place that has the words in it; behind the last comes the first. */
  async toNextFound() {
    if (this.searched !== this.find.value.trim()) await this.search();
    const links = Array.from(this.list.querySelectorAll("a"));
    const at = links.findIndex((link) => link.hasAttribute("aria-current"));
    links[(at + 1) % links.length]?.click();
  }

  leaveSearch() {
    CSS.highlights?.delete("found");
    this.find.value = this.searched = "";
    this.find.closest(".bar")?.classList.remove("finding");
    this.panel.hidden = true;
    document.body.classList.remove("with-index");
  }

  /** @param {Event} event */
  choose(event) {
    const link = /** @type {Element} */ (event.target).closest("a[data-line]");
    if (!(link instanceof HTMLElement)) return;
    event.preventDefault();
    for (const old of this.list.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    if (matchMedia("(max-width: 44rem)").matches) this.uncover();
    this.entries.goTo(Number(link.dataset.line), this.searched).catch(sayError);
  }

  /** Show the conversation again, where the panel lies over it. */
  uncover() {
    this.panel.hidden = true;
    document.body.classList.remove("with-index");
    byId("open-index").setAttribute("aria-expanded", "false");
  }

  setReading() {
    const button = byId("reading");
    const set = (/** @type {boolean} */ on) => {
      const place = this.entries.visible();
      document.body.classList.toggle("reading", on);
      button.setAttribute("aria-pressed", String(on));
      place?.scrollIntoView({ block: "start", behavior: "instant" });
      localStorage.setItem("reading", on ? "yes" : "");
    };
    if (localStorage.getItem("reading")) set(true);
    button.addEventListener("click", () => set(!document.body.classList.contains("reading")));
  }
}
