// @ts-check
// Questions of the agent: shown until somebody has answered, here or anywhere.
import { first } from "./fragments.js";
import { say } from "./messages.js";
import { post } from "./server.js";

export class Questions {
  /** @param {string} id @param {HTMLElement} place */
  constructor(id, place) {
    this.id = id;
    this.place = place;
    /** @type {Map<string, HTMLElement>} */
    this.open = new Map();
  }

  /** @param {string} name @param {string} html */
  add(name, html) {
    this.remove(name);
    const form = /** @type {HTMLFormElement} */ (first(html));
    form.addEventListener("submit", (event) => this.answer(name, form, event));
    this.open.set(name, form);
    this.place.append(form);
  }

  /** Go to what the first question is about, or to its first field. */
  focus() {
    const [form] = this.open.values();
    /** @type {HTMLElement | null} */ (form?.querySelector("input, select, .asked, a, button") ?? null)?.focus();
  }

  /** @param {string} name */
  remove(name) {
    this.open.get(name)?.remove();
    this.open.delete(name);
  }

  /** @param {string} name @param {HTMLFormElement} form @param {SubmitEvent} event */
  async answer(name, form, event) {
    event.preventDefault();
    const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
    if (!button) return;
    const body = button.name === "option"
      ? { question: name, option: button.value }
      : { question: name, action: button.value, ...(button.value === "accept" ? { content: filled(form) } : {}) };
    const error = /** @type {HTMLElement} */ (form.querySelector(".error"));
    const buttons = /** @type {NodeListOf<HTMLButtonElement>} */ (form.querySelectorAll(".actions button"));
    for (const other of buttons) other.disabled = true;
    try {
      const { answered } = await post(`/sessions/${this.id}/answer`, body);
      if (!answered) say("Somebody has answered before.");
      this.remove(name);
    } catch (problem) {
      error.textContent = problem instanceof Error ? problem.message : String(problem);
      for (const other of buttons) other.disabled = false;
    }
  }
}

/** What a form says, in the types that its fields name. @param {HTMLFormElement} form */
function filled(form) {
  /** @type {Record<string, unknown>} */
  const content = {};
  for (const field of /** @type {HTMLInputElement[]} */ (Array.from(form.elements))) {
    const type = field.dataset?.type;
    if (!type) continue;
    if (type === "boolean") content[field.name] = field.checked;
    else if (type === "array") {
      const chosen = /** @type {unknown} */ (field);
      content[field.name] = Array.from(/** @type {HTMLSelectElement} */ (chosen).selectedOptions, (option) => option.value);
    } else if (field.value !== "") content[field.name] = type === "string" ? field.value : Number(field.value);
  }
  return content;
}
