// @ts-check
// The composer: what one writes, what one attaches, and what became of it.
import { byId, make } from "./fragments.js";
import { offerLogin } from "./login.js";
import { say, sayError } from "./messages.js";
import { getJson, newName, post, Unreachable } from "./server.js";
import { Suggestions } from "./suggestions.js";

/** @typedef {import("./entries.js").Entries} Entries */
/** @typedef {{ type: string, [member: string]: unknown }} Block */
/** @typedef {{ block: Block, chip: HTMLElement }} Picture */
/** @typedef {{ text: string, name: string, pictures: Picture[] }} Pending */

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MOST_BYTES = 8 << 20;

export class Composer {
  /** @param {string} id @param {Entries} entries */
  constructor(id, entries) {
    this.id = id;
    this.entries = entries;
    this.form = /** @type {HTMLFormElement} */ (byId("composer"));
    this.field = /** @type {HTMLTextAreaElement} */ (byId("prompt"));
    this.error = /** @type {HTMLElement} */ (this.form.querySelector(".error"));
    this.attached = byId("attached");
    /** @type {{ name: string, description?: string }[]} */
    this.commands = [];
    /** @type {Picture[]} */
    this.pictures = [];
    /** @type {Map<string, string>} files that were chosen, by how they are named in the text */
    this.files = new Map();
    this.editing = "";
    this.next = "";
    this.pending = /** @type {Pending | null} */ (null);
    this.history = /** @type {string[]} */ (JSON.parse(localStorage.getItem("prompts") ?? "[]"));
    this.at = this.history.length;
    this.suggestions = new Suggestions(this.field, (kind, words) => this.suggest(kind, words), (kind, chosen) => {
      if (kind === "@") this.files.set(chosen.name, chosen.uri ?? "");
    });
    this.listen();
    this.field.value = (sessionStorage.getItem(`draft-${id}`) ?? "") + this.field.value; // which was written before we were here
    this.grow();
  }

  listen() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.field.addEventListener("keydown", (event) => this.onKey(event));
    this.field.addEventListener("input", () => {
      this.grow();
      sessionStorage.setItem(`draft-${this.id}`, this.field.value);
    });
    this.field.addEventListener("paste", (event) => this.take(event.clipboardData?.files, event));
    for (const kind of ["dragover", "drop"]) {
      document.addEventListener(kind, (event) => { // wherever it is dropped: the browser must not leave the page for it
        const files = /** @type {DragEvent} */ (event).dataTransfer;
        if (!files?.types.includes("Files")) return;
        event.preventDefault();
        this.form.classList.toggle("dropping", kind === "dragover");
        if (kind === "drop") this.take(files.files);
      });
    }
    document.addEventListener("dragleave", () => this.form.classList.remove("dropping"));
    const chooser = /** @type {HTMLInputElement} */ (byId("pictures"));
    chooser.addEventListener("change", () => {
      this.take(Array.from(chooser.files ?? []));
      chooser.value = ""; // so that the same picture can be chosen again
    });
    byId("stop").addEventListener("click", () => this.stop());
    byId("options").addEventListener("change", (event) => this.setOption(event));
  }

  focus() {
    this.field.focus();
  }

  grow() {
    this.field.style.blockSize = "auto";
    this.field.style.blockSize = `${Math.min(this.field.scrollHeight, innerHeight * 0.4)}px`;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (this.suggestions.onKey(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(pointer: coarse)").matches) {
      event.preventDefault();
      this.send();
    } else if (event.key === "Escape" && this.editing) {
      event.preventDefault();
      this.leaveEditing();
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && this.recall(event.key === "ArrowUp" ? -1 : 1)) {
      event.preventDefault();
    }
  }

  /** Put an earlier prompt into the field, where the cursor is at its border. @param {number} by */
  recall(by) {
    const { selectionStart: start, selectionEnd: end, value } = this.field;
    if (start !== end || (by < 0 ? value.slice(0, start).includes("\n") : value.slice(start).includes("\n"))) return false;
    const at = this.at + by;
    if (at < 0 || at > this.history.length || (value && this.at === this.history.length)) return false;
    this.at = at;
    this.field.value = this.history[at] ?? "";
    this.grow();
    return true;
  }

  /** @param {string} text */
  remember(text) {
    this.history = [...this.history.filter((other) => other !== text), text].slice(-100);
    this.at = this.history.length;
    localStorage.setItem("prompts", JSON.stringify(this.history));
  }

  // Pictures

  /** @param {FileList | File[] | null | undefined} files @param {Event} [event] */
  async take(files, event) {
    for (const file of Array.from(files ?? [])) {
      event?.preventDefault();
      if (!PICTURES.includes(file.type)) {
        say(`${file.name} is no picture that can be sent: PNG, JPEG, GIF or WebP. Name other files with @.`, { severity: "error" });
        continue;
      }
      if (file.size > MOST_BYTES) say(`${file.name} is too large; at most ${MOST_BYTES >> 20} MB.`, { severity: "error" });
      else this.attach({ type: "image", mimeType: file.type, data: await asBase64(file) }, file.name);
    }
  }

  /** @param {Block} block @param {string} name */
  attach(block, name) {
    const picture = make("img", { alt: name, src: `data:${block.mimeType};base64,${block.data}` });
    const remove = make("button", { type: "button", "aria-label": `Remove ${name}` }, "×");
    const chip = make("span", { class: "chip" }, picture, remove);
    const one = { block, chip };
    remove.addEventListener("click", () => {
      this.pictures = this.pictures.filter((other) => other !== one);
      chip.remove();
    });
    this.pictures = [...this.pictures, one];
    this.attached.append(chip);
  }

  // Suggestions

  /** @param {string} kind @param {string} words @returns {Promise<{ name: string, description?: string, uri?: string }[]>} */
  async suggest(kind, words) {
    if (kind === "/") return this.commands.filter(({ name }) => name.toLowerCase().startsWith(words.toLowerCase())).slice(0, 12);
    return getJson(`/sessions/${this.id}/files?q=${encodeURIComponent(words)}`);
  }

  // Sending

  /** @returns {Block[]} */
  blocks() {
    const text = this.field.value.trim();
    /** @type {Block[]} */
    const blocks = text ? [{ type: "text", text }] : [];
    for (const [name, uri] of this.files) {
      if (text.includes(`@${name}`)) blocks.push({ type: "resource_link", name, uri });
    }
    return [...blocks, ...this.pictures.map(({ block }) => block)];
  }

  async send() {
    const prompt = this.blocks();
    const text = this.field.value.trim();
    if (this.pending && text !== this.pending.text) this.next = text;
    if (!prompt.length || this.pending) return;
    const name = newName();
    this.error.textContent = "";
    this.pending = { text, name, pictures: this.pictures };
    this.form.classList.add("sending");
    this.entries.follows = true;
    try {
      if (this.editing) await this.resend(prompt, name);
      else {
        if (!this.entries.atTail) await this.entries.show(null);
        await this.post(prompt, name);
      }
      if (this.pending?.name === name) this.done(this.pending); // else it was seen in the conversation, and something else is written now
    } catch (problem) {
      this.next = "";
      const isLost = this.pending?.name === name;
      if (isLost && !offerLogin(problem, () => this.send())) this.error.textContent = problem instanceof Error ? problem.message : String(problem);
    } finally {
      if (this.pending?.name === name) this.pending = null;
      this.form.classList.toggle("sending", this.pending !== null);
    }
    this.sendNext();
  }

  /** Send what the user wanted to send while it was not known what became of the prompt before, unless they write on. */
  sendNext() {
    if (this.pending || !this.next) return;
    const isWhole = this.field.value.trim() === this.next;
    this.next = "";
    if (isWhole) this.send();
  }

  /**
   * Send a prompt; one of which it is not known whether it arrived is sent again under the same name, which is taken once.
   * @param {Block[]} prompt @param {string} name
   */
  async post(prompt, name) {
    for (let attempt = 1; this.pending?.name === name; attempt++) {
      try {
        return await post(`/sessions/${this.id}/prompt`, { prompt, request: name });
      } catch (problem) {
        if (!(problem instanceof Unreachable) || attempt > 2) throw problem;
        await new Promise((resolve) => setTimeout(resolve, 400 * attempt));
      }
    }
  }

  /** A prompt that shows up in the conversation has arrived, whatever became of the answer. @param {[string, string][]} entries */
  confirm(entries) {
    if (!this.pending?.text) return;
    for (const [key] of entries) {
      const frame = this.entries.byKey.get(key);
      const said = key.startsWith("user_message/") && frame?.dataset.source?.trim();
      if (said && said === this.pending.text) {
        this.done(this.pending);
        this.pending = null;
        this.sendNext();
        return;
      }
    }
  }

  /** Clear what was sent; what is written and attached since stays. @param {Pending} sent */
  done({ text, pictures }) {
    if (text) this.remember(text);
    if (this.field.value.trim() === text) this.field.value = "";
    for (const { chip } of pictures) chip.remove();
    this.pictures = this.pictures.filter((picture) => !pictures.includes(picture));
    for (const name of this.files.keys()) if (!this.field.value.includes(`@${name}`)) this.files.delete(name);
    if (this.field.value) sessionStorage.setItem(`draft-${this.id}`, this.field.value);
    else sessionStorage.removeItem(`draft-${this.id}`);
    this.grow();
  }

  /** Stop the agent; what waited for it comes back to be sent or thrown away. */
  stop() {
    post(`/sessions/${this.id}/cancel`).then(({ withdrawn }) => this.giveBack(withdrawn), sayError);
  }

  /** Take a prompt out of the line. @param {string} message */
  withdraw(message) {
    post(`/sessions/${this.id}/withdraw`, { message }).then(({ withdrawn }) => {
      this.giveBack(withdrawn);
      if (!withdrawn.length) say("It was too late: the agent has it.");
    }, sayError);
  }

  /** Put prompts that were not taken before what is written now. @param {Block[][]} prompts */
  giveBack(prompts) {
    const blocks = prompts.flat();
    const texts = blocks.filter(({ type }) => type === "text").map(({ text }) => String(text));
    for (const { type, name, uri } of blocks) if (type === "resource_link") this.files.set(String(name), String(uri));
    for (const block of blocks) if (block.type === "image") this.attach(block, "the picture");
    if (!blocks.length) return;
    this.field.value = [...texts, this.field.value].filter(Boolean).join("\n\n");
    this.field.dispatchEvent(new Event("input"));
    this.focus();
  }

  /** @param {string} state @param {[string, string][]} waiting the ids and texts of the prompts in line */
  takeState(state, waiting) {
    const busy = state === "running" || state === "requires_action";
    byId("stop").hidden = !busy;
    byId("waiting").replaceChildren(...(busy ? waiting : []).map((prompt) => this.inLine(...prompt)));
  }

  /** @param {string} message @param {string} text */
  inLine(message, text) {
    const back = make("button", { type: "button", class: "quiet", title: "Take it out of the line and change it" }, "Take back");
    back.addEventListener("click", () => this.withdraw(message));
    return make("p", { class: "queued" }, make("span", {}, `Next: ${text || "a picture"}`), back);
  }

  /** @param {Event} event */
  setOption(event) {
    const control = /** @type {HTMLInputElement} */ (event.target);
    const option = control.dataset.option;
    const value = control.type === "checkbox" ? control.checked : control.value;
    post(`/sessions/${this.id}/option`, { option, value }).catch(sayError);
  }

  // Editing what was said

  /** @param {string} entry @param {HTMLElement} frame */
  edit(entry, frame) {
    this.editing = entry;
    this.field.value = frame.dataset.source ?? frame.querySelector("pre")?.textContent ?? ""; // a very long one is shown as it is
    this.form.classList.add("editing");
    const note = make("p", { id: "editing", class: "about" }, 
      "You change what you said: the session goes on in a fork. The files are as they are now, not as they were then. ");
    const cancel = make("button", { type: "button", class: "quiet" }, "Cancel");
    cancel.addEventListener("click", () => this.leaveEditing());
    note.append(cancel);
    document.getElementById("editing")?.remove();
    this.form.prepend(note);
    this.grow();
    this.focus();
  }

  leaveEditing() {
    this.editing = "";
    this.field.value = "";
    this.form.classList.remove("editing");
    document.getElementById("editing")?.remove();
    this.grow();
  }

  /** @param {Block[]} prompt @param {string} name */
  async resend(prompt, name) {
    const made = await post(`/sessions/${this.id}/resend`, { entry: this.editing, prompt, request: name });
    sessionStorage.setItem("resent", JSON.stringify({ fork: made.session, from: this.id }));
    location.assign(made.href);
  }
}

/** Offer the way back from a fork that editing has made. @param {string} id */
export function offerWayBack(id) {
  const resent = JSON.parse(sessionStorage.getItem("resent") ?? "null");
  if (resent?.fork !== id) return;
  sessionStorage.removeItem("resent");
  say("The session goes on here; the one before is as it was.", {
    seconds: 20,
    action: "Undo",
    onAction: () => {
      post(`/sessions/${id}/delete`).then(() => location.assign(`/sessions/${resent.from}`), sayError);
    },
  });
}

/** @param {File} file @returns {Promise<string>} */
function asBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
