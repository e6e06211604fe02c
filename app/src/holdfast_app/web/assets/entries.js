// @ts-check
// The conversation: pages of entries that come as one scrolls, entries that change as one reads.
import { byId, first, fragment, morph } from "./fragments.js";
import { sayError, sayTimes } from "./messages.js";
import { getHtml } from "./server.js";

/** So many entries stay in the page; of more, those far from what is read are loaded again when one comes back. */
const MOST = 600;

/** Mark words in an entry, which is opened where it is folded. It is not changed: what follows it lives on. @param {HTMLElement} frame @param {string} words */
function markWords(frame, words) {
  const wanted = words.trim().toLowerCase();
  const ranges = /** @type {Range[]} */ ([]);
  const texts = document.createTreeWalker(frame, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); wanted && text; text = texts.nextNode()) {
    const said = (text.textContent ?? "").toLowerCase();
    for (let at = said.indexOf(wanted); at >= 0; at = said.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();
      range.setStart(text, at);
      range.setEnd(text, at + wanted.length);
      ranges.push(range);
    }
  }
  const folded = frame.querySelector("details");
  if (folded && wanted) folded.open = true;
  CSS.highlights?.set("found", new Highlight(...ranges));
}

export class Entries {
  /** @param {HTMLElement} host the element of the session */
  constructor(host) {
    this.id = host.dataset.id ?? "";
    this.first = Number(host.dataset.first);
    this.end = Number(host.dataset.end);
    /** So many lines of the session are stored for good, as far as we know. */
    this.lines = Number(host.dataset.lines);
    this.box = byId("entries");
    this.older = /** @type {HTMLElement} */ (this.box.querySelector("[data-more=older]"));
    this.newer = /** @type {HTMLElement} */ (this.box.querySelector("[data-more=newer]"));
    /** @type {Map<string, HTMLElement>} */
    this.byKey = new Map();
    this.loading = false;
    this.follows = true;
    this.top = 0;
    this.note(this.box);
    this.older.addEventListener("click", () => this.loadOlder());
    this.newer.addEventListener("click", () => this.loadNewer());
    const seen = new IntersectionObserver((found) => {
      for (const { isIntersecting, target } of found) {
        if (isIntersecting) (target === this.older ? this.loadOlder() : this.loadNewer()).catch(sayError);
      }
    }, { rootMargin: "1500px" });
    seen.observe(this.older);
    seen.observe(this.newer);
    addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.leaveEnd();
    new ResizeObserver(() => {
      if (this.follows) this.toEnd();
    }).observe(/** @type {HTMLElement} */ (this.box.parentElement));
  }

  /** Whether the end of the conversation is in the page. */
  get atTail() {
    return this.end >= this.lines;
  }

  get pages() {
    return /** @type {HTMLElement[]} */ (Array.from(this.box.querySelectorAll(".entries-page")));
  }

  /** The last page: what comes now is put there. */
  get tail() {
    return this.pages[this.pages.length - 1];
  }

  /** @param {ParentNode} part */
  note(part) {
    for (const frame of /** @type {NodeListOf<HTMLElement>} */ (part.querySelectorAll(".placed[data-key]"))) {
      this.byKey.set(frame.dataset.key ?? "", frame);
    }
  }

  // Where one reads

  get nearEnd() {
    const root = document.documentElement;
    return root.scrollHeight - root.scrollTop - root.clientHeight < 60;
  }

  /** Whoever scrolls up leaves the end; that the conversation grows is no reason to. */
  leaveEnd() {
    addEventListener("wheel", ({ deltaY }) => {
      if (deltaY < 0) this.follows = false;
    }, { passive: true });
    addEventListener("touchmove", () => {
      this.follows = false;
    }, { passive: true });
    addEventListener("keydown", ({ key, target }) => {
      if (["PageUp", "ArrowUp", "Home"].includes(key) && !(target instanceof HTMLTextAreaElement)) this.follows = false;
    });
  }

  scrolled() {
    const top = document.documentElement.scrollTop;
    if (this.nearEnd) this.follows = this.atTail;
    else if (top < this.top - 200) this.follows = false; // the scroll bar, or a jump
    this.top = top;
    byId("latest").hidden = this.follows || this.nearEnd && this.atTail;
  }

  toEnd() {
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  }

  /** Change the page above what is read, and keep what is read where it is. @param {() => void} change */
  keepPlace(change) {
    const root = document.documentElement;
    const anchor = this.visible();
    const before = anchor?.getBoundingClientRect().top ?? 0;
    root.classList.add("no-anchoring");
    change();
    const moved = anchor?.isConnected ? anchor.getBoundingClientRect().top - before : 0;
    if (moved) scrollBy({ top: moved, behavior: "instant" });
    root.classList.remove("no-anchoring");
  }

  /** The first entry that can be seen. @returns {HTMLElement | undefined} */
  visible() {
    const top = byId("main").getBoundingClientRect().top + scrollY > 0 ? 78 : 0; // what goes to the top is put there
    const frames = /** @type {HTMLElement[]} */ (Array.from(this.box.querySelectorAll(".placed")));
    let low = 0, high = frames.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (frames[middle].getBoundingClientRect().bottom > top) high = middle;
      else low = middle + 1;
    }
    return frames[low];
  }

  // Pages

  async loadOlder() {
    if (this.loading || this.first <= 0) return;
    this.loading = true;
    try {
      const { html, lines } = await getHtml(`/sessions/${this.id}/entries?before=${this.first}`);
      const page = sayTimes(first(html));
      this.keepPlace(() => {
        this.note(page);
        this.older.after(page);
        this.first = Number(page.dataset.first);
        this.older.hidden = this.first <= 0;
        if (!this.follows) this.forgetNewest();
      });
      this.lines = Math.max(this.lines, lines);
    } finally {
      this.loading = false;
    }
    this.checkAgain();
  }

  async loadNewer() {
    if (this.loading || this.newer.hidden) return;
    this.loading = true;
    try {
      const { html, lines } = await getHtml(`/sessions/${this.id}/entries?after=${this.end}`);
      this.addBelow(sayTimes(first(html)));
      this.lines = Math.max(this.lines, lines);
      this.newer.hidden = this.atTail;
      this.keepPlace(() => this.forgetOldest());
    } finally {
      this.loading = false;
    }
    this.checkAgain();
  }

  /** @param {HTMLElement} page */
  addBelow(page) {
    this.end = Number(page.dataset.end);
    this.note(page);
    this.newer.before(page);
  }

  /** What came into view while something was loading is asked for now. */
  checkAgain() {
    const near = (/** @type {HTMLElement} */ element) => {
      const at = element.getBoundingClientRect();
      return !element.hidden && at.bottom > -1500 && at.top < innerHeight + 1500;
    };
    if (near(this.older)) this.loadOlder().catch(sayError);
    else if (near(this.newer)) this.loadNewer().catch(sayError);
  }

  forgetNewest() {
    const pages = this.pages;
    while (pages.length > 2 && this.byKey.size > MOST) {
      const page = /** @type {HTMLElement} */ (pages.pop());
      this.forget(page);
      this.end = Number(page.dataset.first);
      this.newer.hidden = false;
    }
  }

  forgetOldest() {
    const pages = this.pages;
    while (pages.length > 2 && this.byKey.size > MOST) {
      const page = /** @type {HTMLElement} */ (pages.shift());
      this.forget(page);
      this.first = Number(page.dataset.end);
      this.older.hidden = false;
    }
  }

  /** @param {HTMLElement} page */
  forget(page) {
    for (const frame of /** @type {NodeListOf<HTMLElement>} */ (page.querySelectorAll(".placed"))) {
      if (this.byKey.get(frame.dataset.key ?? "") === frame) this.byKey.delete(frame.dataset.key ?? "");
    }
    page.remove();
  }

  /** Show the entries around a line, or the end of the conversation. @param {number | null} line */
  async show(line) {
    const where = line === null ? "" : `?around=${line}`;
    const { html, lines } = await getHtml(`/sessions/${this.id}/entries${where}`);
    for (const page of this.pages) page.remove();
    this.byKey.clear();
    const page = sayTimes(first(html));
    this.first = Number(page.dataset.first);
    this.lines = lines;
    this.addBelow(page);
    this.older.hidden = this.first <= 0;
    this.newer.hidden = this.atTail;
    this.follows = line === null;
    if (line === null) this.toEnd();
  }

  /** Go to a line, loading what is around it where it is not here; mark words in it. @param {number} line @param {string} [words] */
  async goTo(line, words = "") {
    let found = this.at(line);
    if (!found) {
      await this.show(line);
      found = this.at(line);
    }
    this.follows = false;
    if (found) markWords(found, words);
    for (let time = 0; time < 3; time++) { // what was not in view yet has its real height only now
      found?.scrollIntoView({ block: "start", behavior: "instant" });
      await new Promise((done) => setTimeout(done, 20));
    }
    history.replaceState(null, "", `#l${line}`);
    for (const old of this.box.querySelectorAll(".found")) old.classList.remove("found");
    found?.classList.add("found");
    return found;
  }

  /** The entry at a line, or the one that the line belongs to. @param {number} line */
  at(line) {
    const exact = document.getElementById(`l${line}`)?.closest(".placed");
    if (exact instanceof HTMLElement) return exact;
    if (line < this.first || line >= this.end) return null;
    let best = null;
    for (const frame of /** @type {NodeListOf<HTMLElement>} */ (this.box.querySelectorAll("[data-line]"))) {
      if (Number(frame.dataset.line) <= line) best = frame;
    }
    return best;
  }

  // What happens

  /** Take entries that are stored for good, up to a line. @param {string} html @param {number} lines */
  settle(html, lines) {
    const wasAtTail = this.atTail;
    this.lines = Math.max(this.lines, lines);
    if (!wasAtTail) {
      this.newer.hidden = false;
      return;
    }
    for (const provisional of this.box.querySelectorAll("[data-provisional]")) this.drop(/** @type {HTMLElement} */ (provisional));
    let last = /** @type {HTMLElement | null} */ (null);
    for (const frame of /** @type {HTMLElement[]} */ (Array.from(sayTimes(fragment(html)).children))) last = this.put(frame, last);
    this.end = lines;
    if (this.tail) this.tail.dataset.end = String(lines);
  }

  /** Take entries as they are now. @param {[string, string][]} entries @param {string[]} removed */
  live(entries, removed) {
    for (const key of removed) {
      const frame = this.byKey.get(key);
      if (frame) this.drop(frame);
    }
    for (const [key, html] of entries) {
      if (this.atTail || this.byKey.has(key)) this.put(sayTimes(first(html)), null);
    }
  }

  /** @param {HTMLElement} frame @param {HTMLElement | null} after */
  put(frame, after) {
    const key = frame.dataset.key ?? "";
    const old = this.byKey.get(key);
    if (old) {
      morph(old, frame);
      return old;
    }
    this.byKey.set(key, frame);
    if (after?.isConnected) after.after(frame);
    else this.tail.append(frame);
    return frame;
  }

  /** @param {HTMLElement} frame */
  drop(frame) {
    this.byKey.delete(frame.dataset.key ?? "");
    frame.remove();
  }
}
