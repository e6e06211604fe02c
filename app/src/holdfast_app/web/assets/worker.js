// @ts-check
// Keeps the files of the page, which never change under their addresses. What is said in sessions is never kept.
const scope = /** @type {any} */ (self);
const KEPT = "holdfast-assets";

scope.addEventListener("install", () => scope.skipWaiting());
scope.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(scope.clients.claim()));

scope.addEventListener("fetch", (/** @type {any} */ event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method === "GET" && origin === scope.location.origin && pathname.startsWith("/assets/")) {
    event.respondWith(kept(event.request));
  }
});

/** @param {Request} request */
async function kept(request) {
  const store = await caches.open(KEPT);
  const found = await store.match(request);
  if (found) return found;
  const answer = await fetch(request);
  if (answer.ok) {
    const tree = new URL(request.url).pathname.split("/")[2];
    for (const old of await store.keys()) if (new URL(old.url).pathname.split("/")[2] !== tree) await store.delete(old);
    await store.put(request, answer.clone());
  }
  return answer;
}

scope.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data?.href ?? "/"));
});

/** @param {string} href */
async function show(href) {
  const tabs = await scope.clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = tabs.find((/** @type {any} */ tab) => new URL(tab.url).pathname === href);
  return there ? there.focus() : scope.clients.openWindow(href);
}
