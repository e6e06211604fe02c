// @ts-check
// What one could be about to write: commands behind “/” at the beginning, files behind “@”.
import { byId, make } from "./fragments.js";

/** @typedef {{ name: string, description?: string, uri?: string }} Suggestion */

export class Suggestions {
  /**
   * @param {HTMLTextAreaElement} field
   * @param {(kind: string, words: string) => Promise<Suggestion[]>} ask
   * @param {(kind: string, chosen: Suggestion) => void} chosen
   */
  constructor(field, ask, chosen) {
    this.field = field;
    this.ask = ask;
    this.chosen = chosen;
    this.list = byId("suggestions");
    /** @type {Suggestion[]} */
    this.items = [];
    this.at = 0;
    this.kind = "";
    this.begin = 0;
    this.asked = 0;
    field.addEventListener("input", () => this.look());
    field.addEventListener("blur", () => setTimeout(() => document.activeElement === field || this.hide(), 150));
  }

  async look() {
    const before = this.field.value.slice(0, this.field.selectionStart);
    const found = /^\/([\w-]*)$/.exec(before) ?? /(?:^|\s)@([^\s@]*)$/.exec(before);
    if (!found) return this.hide();
    this.kind = found[0].trimStart()[0];
    this.begin = before.length - found[1].length;
    const asked = (this.asked += 1);
    const items = await this.ask(this.kind, found[1]).catch(() => []);
    if (asked === this.asked) this.show(items);
  }

  /** @param {Suggestion[]} items */
  show(items) {
    this.items = items;
    this.at = 0;
    this.list.replaceChildren(...items.map((item, at) => this.option(item, at)));
    this.list.hidden = items.length === 0;
    this.mark();
  }

  /** @param {Suggestion} item @param {number} at */
  option(item, at) {
    const option = make("li", { role: "option", id: `suggestion-${at}` }, make("span", { class: "name" }, this.kind + item.name),
      ...(item.description ? [make("span", { class: "about" }, item.description)] : []));
    option.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.at = at;
      this.take();
    });
    return option;
  }

  mark() {
    Array.from(this.list.children).forEach((option, at) => option.setAttribute("aria-selected", String(at === this.at)));
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
    if (this.list.hidden) this.field.removeAttribute("aria-activedescendant");
    else this.field.setAttribute("aria-activedescendant", `suggestion-${this.at}`);
  }

  hide() {
    this.asked += 1;
    this.list.hidden = true;
    this.mark();
  }

  take() {
    const item = this.items[this.at];
    const { value, selectionStart } = this.field;
    this.field.value = `${value.slice(0, this.begin)}${item.name} ${value.slice(selectionStart)}`;
    const end = this.begin + item.name.length + 1;
    this.field.setSelectionRange(end, end);
    this.chosen(this.kind, item);
    this.hide();
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether it was for us */
  onKey(event) {
    if (this.list.hidden || !this.items.length) return false;
    const written = this.field.value.slice(this.begin, this.field.selectionStart);
    if (event.key === "Enter" && written === this.items[this.at].name) {
      this.hide();
      return false;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : -1) + this.items.length) % this.items.length;
      this.mark();
    } else if (event.key === "Enter" || event.key === "Tab") this.take();
    else if (event.key === "Escape") this.hide();
    else return false;
    event.preventDefault();
    return true;
  }
}
