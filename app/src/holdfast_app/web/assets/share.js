// @ts-check
// Sharing a session: links with which others read it, made, copied and revoked.
import { make } from "./fragments.js";
import { sayError, toCopy } from "./messages.js";
import { post } from "./server.js";

/** @typedef {{ id: string, until: string, redacted: boolean }} Link */

const LASTS = /** @type {[string, string][]} */ ([["3600", "an hour"], ["86400", "a day"], ["604800", "a week"], ["2592000", "30 days"]]);

/** Show which links lead to a session, and make new ones. @param {string} id */
export async function openSharing(id) {
  const base = `/sessions/${id}`;
  const list = make("ul", { class: "links" });
  const lasts = /** @type {HTMLSelectElement} */ (make("select", {}, ...LASTS.map(([value, words]) => make("option", { value }, words))));
  lasts.value = "604800";
  const secrets = /** @type {HTMLInputElement} */ (make("input", { type: "checkbox" }));
  const made = make("div", { class: "made", role: "status" });
  const create = make("button", { type: "submit", class: "primary" }, "Make a link");
  const close = make("button", { type: "button" }, "Close");
  const form = make("form", { method: "dialog" },
    make("h2", { id: "share-heading" }, "Share this session"),
    make("p", { class: "about" }, "Whoever has the link reads this session as it is then, and can do nothing else. They need not sign in."),
    make("label", {}, make("span", {}, "The link works for"), lasts),
    make("label", { class: "check" }, secrets, make("span", {}, "Show what looks like a secret too")),
    make("div", { class: "actions" }, close, create), made, list);
  const dialog = /** @type {HTMLDialogElement} */ (make("dialog", { "aria-labelledby": "share-heading" }, form));
  const refresh = async () => list.replaceChildren(...(await post(`${base}/shares`)).links.map(
    (/** @type {Link} */ link) => linkRow(base, link, () => refresh().catch(sayError))));
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    post(`${base}/share`, { seconds: Number(lasts.value), secrets: secrets.checked }).then((link) => {
      made.replaceChildren(newLink(new URL(link.path, location.href).href));
      return refresh();
    }).catch(sayError);
  });
  await refresh();
  document.body.append(dialog);
  dialog.showModal();
  create.focus();
}

/** @param {string} address */
function newLink(address) {
  return make("div", { class: "new-link" }, make("p", {}, "This link is shown once:"), toCopy(address, "The link"));
}

/** @param {string} base @param {Link} link @param {() => void} then */
function linkRow(base, link, then) {
  const until = new Date(link.until).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  const words = `Link ${link.id.slice(0, 6)}, until ${until}${link.redacted ? "" : ", with secrets"}`;
  const revoke = make("button", { type: "button", class: "danger", "aria-label": `Revoke link ${link.id.slice(0, 6)}` }, "Revoke");
  revoke.addEventListener("click", () => {
    post(`${base}/unshare`, { link: link.id }).then(then, sayError);
  });
  return make("li", {}, make("span", {}, words), revoke);
}
