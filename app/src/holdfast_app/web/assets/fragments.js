// @ts-check
// Markup from the server put in place. No other module makes elements of markup, and none makes markup of text.

/** @typedef {{ createHTML(html: string): any, createScriptURL(address: string): any }} Policy */

/** @type {Policy} */
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy("holdfast", {
  createHTML: (/** @type {string} */ html) => html,
  createScriptURL: (/** @type {string} */ address) => {
    if (address !== "/worker.js") throw new TypeError("no script of ours");
    return address;
  },
}) ?? { createHTML: (html) => html, createScriptURL: (address) => address };

/** Return the address of our worker, as a browser with Trusted Types wants it. @param {string} address @returns {string} */
export function script(address) {
  return policy.createScriptURL(address);
}

/**
 * Return the elements of a piece of markup that our server has made.
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  return template.content;
}

/**
 * Return the first element of a piece of markup.
 * @param {string} html
 * @returns {HTMLElement}
 */
export function first(html) {
  const found = fragment(html).firstElementChild;
  if (!(found instanceof HTMLElement)) throw new Error("no element came");
  return found;
}

/**
 * Make an element like another one, changing as little as possible: what a reader has selected, opened or scrolled stays.
 * @param {Element} old
 * @param {Element} now
 */
export function morph(old, now) {
  if (old.isEqualNode(now)) return;
  copyAttributes(old, now);
  const before = Array.from(old.childNodes), after = Array.from(now.childNodes);
  let at = 0;
  for (; at < after.length; at++) {
    const was = before[at], is = after[at];
    if (was === undefined) old.append(is);
    else if (was.isEqualNode(is)) continue;
    else if (was instanceof Element && is instanceof Element && was.tagName === is.tagName) morph(was, is);
    else if (was instanceof Text && is instanceof Text) growText(was, is.data);
    else old.replaceChild(is, was);
  }
  for (; at < before.length; at++) before[at].remove();
}

/** @param {Element} old @param {Element} now */
function copyAttributes(old, now) {
  for (const { name } of Array.from(old.attributes)) {
    const kept = name === "open" || name === "class" && old.classList.contains("placed");
    if (!kept && !now.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of Array.from(now.attributes)) {
    if (name === "open" || old.getAttribute(name) === value) continue;
    old.setAttribute(name, value);
  }
}

/** @param {Text} text @param {string} now */
function growText(text, now) {
  if (now.startsWith(text.data)) text.appendData(now.slice(text.data.length));
  else text.data = now;
}

/**
 * Return an element of the page that must be there.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no #${id}`);
  return found;
}

/**
 * Make an element of our own, with text that is shown as it is.
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {...(string | Node)} children
 */
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
