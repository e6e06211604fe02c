// Drives a browser for app/tests/support/browser.py: one JSON line in, one out. Ends, and the browser with it, at the end of stdin.
//
// {"id": 1, "on": "p1", "calls": [["locator", "button"], ["click"]]} calls one method after the other on a page, and
// answers with what the last one returned. "open" makes a page in a context of its own and says its name; "hold" lets what a page
// asks for at an address wait, "release" lets it go ("continue") or fail, then and later ("abort").
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const [executablePath, patience] = process.argv.slice(2);
const quiet = ['--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run',
  '--disable-dev-shm-usage', '--enable-precise-memory-info', '--js-flags=--expose-gc'];
const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
const browser = await chromium.launch({ executablePath, args: [...quiet, ...sandbox], timeout: Number(patience) });

const things = new Map([['browser', browser]]);
const noted = new Map(); // by page, what happened in it that a test may want to know
const held = new Map(); // by the name of a page, the address that it waits for, and its requests
let count = 0;

function note(page, kind, text) {
  noted.get(page).push([kind, String(text)]);
}

async function open(options, inContextOf) {
  const context = inContextOf ? things.get(inContextOf).context() : await browser.newContext(options);
  if (!inContextOf) {
    context.setDefaultTimeout(Number(patience));
    await context.exposeBinding('noteViolation', ({ page }, text) => note(page, 'violation', text));
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        globalThis.noteViolation(`${event.effectiveDirective}: ${event.blockedURI} ${event.sample}`);
      });
    });
  }
  const page = await context.newPage();
  noted.set(page, []);
  page.on('pageerror', (error) => note(page, 'error', error.stack ?? error));
  page.on('console', (message) => note(page, message.type() === 'error' ? 'complaint' : 'console', message.text()));
  page.on('request', (request) => note(page, 'request', request.url()));
  page.on('crash', () => note(page, 'error', 'the page crashed'));
  page.on('dialog', (dialog) => {
    note(page, 'dialog', dialog.message());
    dialog.dismiss().catch(() => {});
  });
  const name = `p${++count}`;
  things.set(name, page);
  return name;
}

/** Begin to trace a page, or end it: then say how much CPU each task of its main thread took, in milliseconds, from a few on. */
async function trace(name) {
  if (name) return browser.startTracing(things.get(name), { categories: ['-*', '__metadata', 'disabled-by-default-devtools.timeline'] });
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const main = new Set(traceEvents.filter((each) => each.name === 'thread_name' && each.args.name === 'CrRendererMain').map((each) => `${each.pid}/${each.tid}`));
  const tasks = traceEvents.filter((each) => each.name === 'RunTask' && each.tdur > 5_000 && main.has(`${each.pid}/${each.tid}`));
  const found = {};
  for (const { pid, tdur } of tasks) (found[pid] ??= []).push(tdur / 1000);
  return found;
}

async function hold(name, address, answers) {
  const waiting = [];
  held.set(name, { address, waiting });
  await things.get(name).route(address, async (route) => {
    if (!answers) return waiting.push(route);
    const response = await route.fetch();
    return waiting.push({ continue: () => route.fulfill({ response }) });
  });
}

async function release(name, how) {
  const { address, waiting } = held.get(name);
  // What never arrives does not arrive later either: on a busy machine the page may not have asked for it yet.
  if (how === 'abort') await things.get(name).route(address, (route) => route.abort());
  for (const route of waiting.splice(0)) await route[how]();
  if (how !== 'abort') await things.get(name).unroute(address);
}

async function perform({ on, calls }) {
  if (on === 'open') return open(...calls);
  if (on === 'hold') return hold(...calls);
  if (on === 'release') return release(...calls);
  if (on === 'trace') return trace(...calls);
  let result = things.get(on);
  if (calls[0][0] === 'noted') return noted.get(result).splice(0);
  for (const [name, ...args] of calls) {
    const member = result[name];
    result = typeof member === 'function' ? await member.apply(result, args) : member;
  }
  if (Buffer.isBuffer(result)) return result.toString('base64');
  return result === Object(result) && !Array.isArray(result) && Object.getPrototypeOf(result) !== Object.prototype ? null : result;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, ...request } = JSON.parse(line);
  perform(request).then(
    (result) => console.log(JSON.stringify({ id, result: result ?? null })),
    (error) => console.log(JSON.stringify({ id, error: String(error.message ?? error) })),
  );
}
await browser.close();
