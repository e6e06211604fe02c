// @ts-check
// One session: puts together the conversation, the feed, the composer and the index.
import { Composer, offerWayBack } from "./composer.js";
import { Entries } from "./entries.js";
import { byId, fragment, morph } from "./fragments.js";
import { openLogin } from "./login.js";
import { Index } from "./places.js";
import { openMenu, sessionItems } from "./menu.js";
import { copy, say, sayError, sayTimes } from "./messages.js";
import { noteWaiting } from "./notify.js";
import { Questions } from "./questions.js";
import { Feed, post } from "./server.js";

const STATES = /** @type {Record<string, string>} */ ({
  running: "working",
  requires_action: "waits for you",
  interrupted: "was broken off",
});

/** The page of a session. */
class SessionPage {
  /** @param {HTMLElement} host */
  constructor(host) {
    this.host = host;
    this.id = host.dataset.id ?? "";
    this.entries = new Entries(host);
    this.questions = new Questions(this.id, byId("questions"));
    this.index = new Index(this.id, this.entries);
    this.composer = document.getElementById("composer") ? new Composer(this.id, this.entries) : null;
    this.state = "";
    this.program = "";
    this.connected = true;
    this.seeing = 0;
    document.addEventListener("visibilitychange", () => this.seen());
    byId("latest").addEventListener("click", () => this.toLatest().catch(sayError));
    byId("session-menu").addEventListener("click", () => this.openMenu());
    host.addEventListener("click", (event) => this.clicked(event));
    addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("hashchange", () => this.followHash());
    this.beginAt();
    this.feed = new Feed(() => `/sessions/${this.id}/live?lines=${this.entries.lines}`, (message) => this.take(message),
      (connected) => this.tellConnected(connected));
    sayTimes(document);
    offerWayBack(this.id);
    if (!this.entries.byKey.size && matchMedia("(pointer: fine)").matches) this.composer?.focus(); // what else would one do
  }

  beginAt() {
    const named = Number(this.host.dataset.at ?? "");
    const words = new URLSearchParams(location.search).get("words") ?? "";
    if (this.host.dataset.at !== undefined && !Number.isNaN(named)) this.entries.goTo(named, words).catch(sayError);
    else if (/^#l\d+$/.test(location.hash)) this.followHash();
    else this.entries.toEnd();
  }

  followHash() {
    const line = Number(location.hash.slice(2));
    if (/^#l\d+$/.test(location.hash)) this.entries.goTo(line).catch(sayError);
  }

  // What the server tells

  /** @param {any} message */
  take(message) {
    switch (message.type) {
      case "entries":
        this.entries.settle(message.html, message.lines);
        this.index.outdated = true;
        this.seen();
        break;
      case "live":
        this.entries.live(message.entries, message.removed);
        this.composer?.confirm(message.entries);
        break;
      case "state":
        this.takeState(message);
        break;
      case "commands":
        if (this.composer) this.composer.commands = message.commands;
        break;
      case "question":
        this.questions.add(message.id, message.html);
        break;
      case "answered":
        this.questions.remove(message.id);
        break;
      case "notice":
        this.tellNotice(message);
        break;
      case "reset":
        if (this.entries.follows) this.entries.show(null).catch(sayError);
        else this.entries.newer.hidden = false;
        break;
      case "gone":
        this.feed.close();
        if (this.composer) this.composer.form.inert = true;
        say(message.text, { severity: "error", seconds: 3600 });
        break;
    }
  }

  /** @param {{ text: string, severity: string }} message */
  tellNotice({ text, severity }) {
    if (severity !== "login") say(text, { severity, seconds: 10 });
    else post(`/sessions/${this.id}/logins`).then(({ login }) => openLogin(login, text, () => this.composer?.focus()), sayError);
  }

  /** @param {any} message */
  takeState(message) {
    this.state = message.state;
    this.program = message.program;
    this.host.dataset.state = message.state;
    if (message.title !== null) this.rename(message.title);
    for (const [name, html] of Object.entries(message.html)) {
      const place = document.getElementById(name);
      if (!place || place.contains(document.activeElement) && name === "options") continue;
      const now = place.cloneNode(false);
      /** @type {Element} */ (now).append(fragment(html));
      morph(place, /** @type {Element} */ (now));
    }
    this.composer?.takeState(message.state, message.waiting);
    this.tellState();
    noteWaiting(this.id, byId("title").textContent ?? "", message.state === "requires_action").catch(sayError);
  }

  /** Say that the user sees the session as it is now, unless nobody looks. */
  seen() {
    clearTimeout(this.seeing);
    this.seeing = setTimeout(() => {
      if (!document.hidden) post(`/sessions/${this.id}/seen`).catch(() => {});
    }, 500);
  }

  /** @param {string} title */
  rename(title) {
    this.host.dataset.title = title;
    byId("title").textContent = title || "Session without a title";
  }

  /** @param {boolean} connected */
  tellConnected(connected) {
    if (this.connected === connected) return;
    this.connected = connected;
    this.tellState();
  }

  tellState() {
    const doing = STATES[this.state] ?? (this.program ? "open" : "");
    const words = this.connected ? `${doing}${this.program ? ` in ${this.program}` : ""}` : "connecting…";
    const place = byId("state");
    place.dataset.state = this.connected ? this.state : "offline";
    if (place.textContent !== words) place.textContent = words;
    const mark = this.state === "requires_action" ? "● " : "";
    document.title = `${mark}${byId("title").textContent} · Holdfast`;
  }

  // What the user does

  async toLatest() {
    if (!this.entries.atTail) await this.entries.show(null);
    this.entries.follows = true;
    this.entries.toEnd();
  }

  openMenu() {
    const { title = "", agent = "", others = "" } = this.host.dataset;
    const session = { id: this.id, title, agent, archived: "archived" in this.host.dataset, others: others ? others.split("\n") : [] };
    openMenu(byId("session-menu"), sessionItems(session, {
      renamed: (now) => this.rename(now),
      removed: () => location.assign("/"), // which offers to undo it
      restored: () => {},
    }));
  }

  /** @param {Event} event */
  clicked(event) {
    const target = /** @type {Element} */ (event.target);
    const anchor = target.closest("a.anchor");
    if (anchor instanceof HTMLAnchorElement) {
      event.preventDefault();
      const line = Number(anchor.hash.slice(2));
      if (Number.isNaN(line)) return;
      history.replaceState(null, "", anchor.hash);
      copy(location.href, "The link to this entry is copied.").catch(() => {}); // it is in the address anyway
      return;
    }
    const terminal = target.closest("a[href^='#terminal-']");
    if (terminal instanceof HTMLAnchorElement) this.openTerminal(terminal, event);
    const copied = target.closest("[data-copy]");
    if (copied instanceof HTMLElement) copy(copied.dataset.copy ?? "", "The command is copied.").catch(sayError);
    const frame = target.closest(".placed");
    const button = target.closest("[data-entry-menu]");
    if (button instanceof HTMLElement && frame instanceof HTMLElement) this.openEntryMenu(button, frame);
  }

  /** @param {HTMLAnchorElement} link @param {Event} event */
  openTerminal(link, event) {
    const found = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (!(found instanceof HTMLDetailsElement)) return;
    event.preventDefault();
    found.open = true;
    found.scrollIntoView({ block: "nearest", behavior: "instant" });
    found.querySelector("summary")?.focus();
  }

  /** @param {HTMLElement} button @param {HTMLElement} frame */
  openEntryMenu(button, frame) {
    const entry = frame.dataset.fork ?? "";
    const anchor = /** @type {HTMLAnchorElement | null} */ (frame.querySelector("a.anchor"));
    const said = frame.dataset.source ?? frame.querySelector(".prose, pre, .diff")?.textContent ?? "";
    const items = [
      { label: "Copy the text", run: () => copy(said.trim(), "The text is copied.") },
      { label: "Copy the link", run: () => anchor?.click() },
      { label: "Fork from here", run: async () => location.assign((await post(`/sessions/${this.id}/fork`, { entry })).href) },
    ];
    const composer = this.composer;
    if (frame.dataset.role === "user" && composer) {
      items.unshift({ label: "Edit and send again", run: async () => composer.edit(entry, frame) });
    }
    openMenu(button, items);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement
      || event.target instanceof HTMLSelectElement;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open], .menu")) return;
    if (event.key === "Escape" && !event.defaultPrevented && this.state === "running") this.composer?.stop();
    if (typing) return;
    const actions = /** @type {Record<string, () => unknown>} */ ({
      j: () => this.index.step(1),
      k: () => this.index.step(-1),
      "/": () => this.index.openFind(),
      i: () => this.index.toggle(),
      r: () => byId("reading").click(),
      G: () => this.toLatest(),
      a: () => this.questions.focus(),
      c: () => this.composer?.focus(),
      u: () => location.assign("/"),
    });
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    Promise.resolve(action()).catch(sayError);
  }
}

customElements.define("hf-session", class extends HTMLElement {
  connectedCallback() {
    new SessionPage(this);
  }
});
document.dispatchEvent(new Event("holdfast:ready"));
