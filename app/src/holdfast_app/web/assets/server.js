// @ts-check
// The server: asking it, telling it, and listening to it, over a line that may be cut at any time.

/** @typedef {{ id: string, name: string, description: string, instead: string, command: string }} Way */
/** @typedef {{ agent: string, title: string, ways: Way[], otherwise: string }} Login */

export class Refused extends Error {
  /** @param {string} message @param {number} status @param {Login} [login] how to log in, where that is what is missing */
  constructor(message, status, login) {
    super(message);
    this.status = status;
    this.login = login;
  }
}

/** Nobody answered: it is not known whether the server has heard it. */
export class Unreachable extends Error {}

/**
 * @param {string} address
 * @param {RequestInit} [how]
 * @returns {Promise<Response>}
 */
async function ask(address, how) {
  let answer;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...how });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("The server cannot be reached");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) throw new Refused("You are signed out. Load the page again to sign in.", 401);
  const said = await answer.json().catch(() => ({})); // where it is no JSON the status says enough
  throw new Refused(said.error ?? "The server refused", answer.status, said.login);
}

/** @param {string} address @param {AbortSignal} [signal] */
export async function getHtml(address, signal) {
  const answer = await ask(address, { signal });
  return { html: await answer.text(), lines: Number(answer.headers.get("x-lines") ?? 0) };
}

/** @param {string} address @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function getJson(address, signal) {
  return (await ask(address, { signal })).json();
}

/** @param {string} address @param {object} [body] @returns {Promise<any>} */
export async function post(address, body = {}) {
  const headers = { "content-type": "application/json" };
  return (await ask(address, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** @returns {string} a name that nobody else gives to a request */
export function newName() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const SILENCE = 40_000;

/** Listens to a feed, and begins again whenever the line is cut, until it is closed. */
export class Feed {
  /**
   * @param {() => string} address where it listens, asked for anew each time
   * @param {(message: any) => void} take
   * @param {(connected: boolean) => void} tell
   */
  constructor(address, take, tell) {
    this.address = address;
    this.take = take;
    this.tell = tell;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.attempts = 0;
    this.timer = 0;
    this.closed = false;
    this.onOnline = () => this.begin();
    addEventListener("online", this.onOnline);
    addEventListener("pageshow", this.onOnline);
    document.addEventListener("visibilitychange", this.onOnline);
    this.begin();
  }

  begin() {
    if (this.closed || (this.socket && this.socket.readyState <= WebSocket.OPEN)) return;
    clearTimeout(this.timer);
    const url = new URL(this.address(), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = (this.socket = new WebSocket(url));
    socket.onopen = () => this.hear();
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      this.hear();
      this.attempts = 0;
      const message = JSON.parse(event.data);
      if (message.type) this.take(message);
    };
    socket.onclose = () => {
      if (socket === this.socket) this.again();
    };
    this.wait(SILENCE);
  }

  hear() {
    this.tell(true);
    this.wait(SILENCE);
  }

  /** @param {number} milliseconds */
  wait(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.again(), milliseconds);
  }

  again() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    if (this.closed) return;
    this.tell(false);
    this.attempts += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.begin(), Math.min(8000, 250 * 2 ** Math.min(this.attempts, 5)) * (0.75 + Math.random() / 2));
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    removeEventListener("online", this.onOnline);
    removeEventListener("pageshow", this.onOnline);
    document.removeEventListener("visibilitychange", this.onOnline);
    this.socket?.close();
  }
}
