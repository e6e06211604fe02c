// @ts-check
// What a user does before the modules of the page are here: kept, and done as soon as they are. This is no module: it runs before
// there is anything to click on, whatever else is still on its way.
(() => {
  /** @type {(() => void)[]} */
  const kept = [];
  /** @type {Set<EventTarget>} */
  const written = new Set();
  const listening = new AbortController();

  /** @param {string} kind @param {(event: any) => void} take */
  const listen = (kind, take) => addEventListener(kind, take, { capture: true, signal: listening.signal });

  /** @param {EventTarget | null} target @returns {target is HTMLInputElement | HTMLTextAreaElement} */
  const isField = (target) => target instanceof HTMLElement && target.matches("input, textarea, select");

  listen("click", ({ target }) => {
    const button = target instanceof Element && target.closest("button[type=button]");
    if (button instanceof HTMLElement) kept.push(() => button.click());
  });
  listen("submit", (event) => {
    const { target: form, submitter } = event;
    if (form.hasAttribute("action")) return; // which the browser can do by itself
    event.preventDefault();
    kept.push(() => form.requestSubmit(submitter));
  });
  listen("change", ({ target }) => {
    kept.push(() => target.dispatchEvent(new Event("change", { bubbles: true })));
  });
  listen("input", ({ target }) => {
    if (!written.has(target)) kept.push(() => target.dispatchEvent(new Event("input", { bubbles: true })));
    written.add(target);
  });
  listen("keydown", (event) => {
    const { key, target, ctrlKey, metaKey, altKey, shiftKey } = event;
    if (ctrlKey || metaKey || altKey || event.isComposing) return;
    if (!isField(target)) kept.push(() => press(key));
    else if (key === "Enter" && !shiftKey && target instanceof HTMLTextAreaElement) {
      const text = target.value;
      event.preventDefault(); // it is no new line
      kept.push(() => {
        if (target.value.endsWith(text)) press(key, target); // behind what was there before, but nothing was written since
      });
    }
  });

  /** Press a key where the focus is now; a letter that would go into a field is written there. @param {string} key @param {Element | null} [where] */
  function press(key, where = document.activeElement) {
    if (!isField(where) || key === "Enter") where?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    else if (key.length === 1) {
      where.value += key;
      where.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  listen("error", ({ target }) => {
    if (!(target instanceof HTMLScriptElement)) return;
    const box = document.createElement("div");
    box.className = "message error";
    box.textContent = "A part of this page did not arrive. Load it again.";
    document.getElementById("messages")?.append(box);
  });

  document.addEventListener("holdfast:ready", () => {
    listening.abort();
    for (const act of kept) act();
  }, { once: true });
})();
