// What the official TypeScript SDK's client does with the agent: the story of `story.py`, for both protocol versions.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";

const PATIENCE = 20_000; // no step takes longer
const ENDLESS = "/stream 1000000";

/** What the client is told and asked. */
export class Notes {
  constructor(plan) {
    this.capabilities = plan.capabilities;
    this.answers = [...plan.answers];
    this.asked = [];
    this.updates = [];
    this.waiting = new Set();
  }

  told(sessionId, update) {
    this.updates.push([sessionId, update]);
    for (const look of this.waiting) look();
  }

  /** Answer a question for permission as planned. */
  choose(question, options) {
    this.asked.push(question);
    const wanted = this.answers.shift();
    return { outcome: { outcome: "selected", optionId: options.find((it) => it.kind === wanted).optionId } };
  }

  /** Fill in a form. */
  fill(message) {
    this.asked.push(message);
    return { action: "accept", content: { name: "Ada" } };
  }

  mark() {
    return this.updates.length;
  }

  since(mark, session) {
    return this.updates.slice(mark).filter(([of]) => of === session).map(([, update]) => update);
  }

  /** Wait until something was told of a session since then. It looks at each update once: an endless turn has many. */
  until(mark, session, isWanted) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`waited in vain: ${isWanted}`)), PATIENCE);
      let at = mark;
      const look = () => {
        while (at < this.updates.length) {
          const [of, update] = this.updates[at++];
          if (of !== session || !isWanted(update)) continue;
          clearTimeout(late);
          this.waiting.delete(look);
          resolve();
          return;
        }
      };
      this.waiting.add(look);
      look();
    });
  }

  untilTold(mark, session, kind) {
    return this.until(mark, session, (it) => it.sessionUpdate === kind);
  }
}

/** Wait for words of the agent: tells of each update whether they were said by then. */
function saying(words) {
  let text = "";
  return (it) => (text += said([it], "agent")).includes(words);
}

/** Put together what somebody has said. */
function said(told, role) {
  return told
    .map((it) => {
      if (it.sessionUpdate === `${role}_message_chunk`) return it.content.text ?? "";
      if (it.sessionUpdate === `${role}_message`) return (it.content ?? []).map((block) => block.text ?? "").join("");
      return "";
    })
    .join("");
}

/** Say how each tool call stands, in their order. */
function calls(told) {
  const status = new Map();
  for (const it of told) if (it.toolCallId) status.set(it.toolCallId, it.status ?? status.get(it.toolCallId));
  return [...status.values()];
}

function kinds(told) {
  return [...new Set(told.map((it) => it.sessionUpdate))].sort();
}

class Story {
  report = { turns: [], exits: [] };

  constructor(plan, acp, makeClient, Peer) {
    Object.assign(this, { plan, acp, makeClient, Peer, notes: new Notes(plan) });
  }

  async withAgent(op) {
    if (this.plan.remote) return this.withRemote(op);
    const [command, ...args] = this.plan.agent;
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    const exit = once(child, "exit");
    const stream = this.acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
    const connection = this.makeClient(this.notes).connect(stream);
    const peer = new this.Peer(connection.agent, this.notes);
    this.report.version = await peer.initialize();
    const result = await op(peer, child);
    connection.close();
    child.stdin.end();
    const [code, signal] = await exit;
    this.report.exits.push(signal === "SIGKILL" ? -9 : code);
    return result;
  }

  /** Connect to a server as the SDK's own transports do. */
  async withRemote(op) {
    const { url, way, token } = this.plan.remote;
    const headers = { Authorization: `Bearer ${token}` };
    const stream = way === "http" ? createHttpStream(url, { headers }) : createWebSocketStream(url.replace("http", "ws"), { headers, WebSocket });
    const connection = this.makeClient(this.notes).connect(stream);
    const peer = new this.Peer(connection.agent, this.notes);
    this.report.version = await peer.initialize();
    const result = await op(peer);
    connection.close();
    return result;
  }

  async tell() {
    if (this.plan.remote) {
      const session = await this.withAgent(async (peer) => {
        const talked = await this.talk(peer);
        await this.list(peer);
        return talked;
      });
      await this.withAgent((peer) => this.restore(peer, session, session));
      return;
    }
    const [session, broken] = await this.withAgent(async (peer, child) => {
      const talked = await this.talk(peer);
      if (!this.plan.many) return [talked];
      await this.list(peer);
      return [talked, await this.break(peer, child)];
    });
    if (this.plan.many) await this.withAgent((peer) => this.restore(peer, session, broken));
  }

  async talk(peer) {
    const [session, options] = await peer.new(this.plan.cwd);
    this.report.options = options;
    if (this.plan.many) await this.notes.untilTold(0, session, "available_commands_update");
    this.report.announced = this.notes.since(0, session);
    for (const text of this.plan.prompts) await this.prompt(peer, session, text);
    if (this.plan.many) {
      await this.cancel(peer, session);
      await peer.setMode(session, "auto");
      await peer.setOption(session, "tone", "pirate");
      this.report.set = await peer.setOption(session, "verbose", true);
      await peer.close(session);
    }
    this.report.asked = this.notes.asked;
    return session;
  }

  async prompt(peer, session, text) {
    const mark = this.notes.mark();
    this.note(text, await peer.prompt(session, text), this.notes.since(mark, session));
  }

  note(text, stop, told) {
    this.report.turns.push({ prompt: text, stop, kinds: kinds(told), text: said(told, "agent"), calls: calls(told) });
  }

  async cancel(peer, session) {
    const mark = this.notes.mark();
    const turn = peer.prompt(session, ENDLESS);
    await this.notes.until(mark, session, saying(" 20 "));
    await peer.cancel(session);
    const stop = await turn;
    this.note(ENDLESS, stop, this.notes.since(mark, session));
  }

  async list(peer) {
    for (let n = 0; n < this.plan.many; n += 1) {
      const [session] = await peer.new(this.plan.cwd);
      await peer.prompt(session, `Number ${n}`);
    }
    this.report.pages = [];
    let cursor;
    do {
      const page = await peer.list(cursor);
      this.report.pages.push(page.ids);
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** Kill the agent in the middle of an answer. */
  async break(peer, child) {
    const [session] = await peer.new(this.plan.cwd);
    const mark = this.notes.mark();
    const turn = peer.prompt(session, ENDLESS).catch(() => "broken");
    await this.notes.until(mark, session, saying(" 200 "));
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    void turn;
    this.report.seen = said(this.notes.since(mark, session), "agent");
    return session;
  }

  async restore(peer, session, broken) {
    const { cwd } = this.plan;
    for (const [name, id] of [["broken", broken], ["loaded", session]]) {
      const mark = this.notes.mark();
      const options = await peer.load(id, cwd);
      await this.notes.untilTold(mark, id, "session_info_update");
      const told = this.notes.since(mark, id);
      const texts = { user: said(told, "user"), text: said(told, "agent") };
      this.report[name] = { options, ...texts, calls: calls(told), kinds: kinds(told) };
    }
    await peer.close(session);
    const mark = this.notes.mark();
    this.report.resumed = await peer.resume(session, cwd);
    await this.notes.untilTold(mark, session, "available_commands_update");
    this.report.resumed_told = kinds(this.notes.since(mark, session));
    const fork = await peer.fork(session, cwd);
    this.report.forks = fork !== session;
    for (const it of [session, fork]) await this.prompt(peer, it, "/history");
    await peer.delete(session);
    const { ids } = await peer.list();
    this.report.listed = [ids.includes(session), ids.includes(fork)];
    await peer.load(session, cwd).catch((error) => (this.report.gone = error.code));
  }
}

/** Tell the story of the plan in our argument, and print the report. */
export async function run(acp, makeClient, Peer) {
  const story = new Story(JSON.parse(process.argv[2]), acp, makeClient, Peer);
  await story.tell();
  process.stdout.write(JSON.stringify(story.report), () => process.exit(0));
}
