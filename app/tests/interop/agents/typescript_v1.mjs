// An agent on the official TypeScript SDK, protocol version 1: it tells a story, waits, or reads a file.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { agent: ours, client: theirs } = acp.methods;
const sessions = new Map();

const text = (it) => ({ type: "text", text: it });

class Session {
  constructor(id) {
    Object.assign(this, { id, past: [], cancelled: () => {} });
  }

  async tell(client, update) {
    this.past.push(update);
    await client.notify(theirs.session.update, { sessionId: this.id, update });
  }

  async say(client, words) {
    for (const word of words) await this.tell(client, { sessionUpdate: "agent_message_chunk", content: text(word) });
  }

  async story(client) {
    await this.say(client, ["Let me ", "look. "]);
    const call = { toolCallId: `call-${this.past.length}`, title: "Read thermometer", kind: "read" };
    await this.tell(client, { sessionUpdate: "tool_call", status: "pending", ...call });
    const options = [
      { optionId: "yes", name: "Yes", kind: "allow_once" },
      { optionId: "no", name: "No", kind: "reject_once" },
    ];
    const { outcome } = await client.request(theirs.session.requestPermission, {
      sessionId: this.id,
      toolCall: call,
      options,
    });
    const allowed = outcome.outcome === "selected" && outcome.optionId === "yes";
    await this.tell(client, {
      sessionUpdate: "tool_call_update",
      toolCallId: call.toolCallId,
      status: allowed ? "completed" : "failed",
      content: [{ type: "content", content: text(allowed ? "21 °C" : "not allowed") }],
    });
    await this.say(client, ["Do", "ne."]);
  }

  async prompt(client, words) {
    const stopped = new Promise((resolve) => (this.cancelled = resolve));
    this.past.push({ sessionUpdate: "user_message_chunk", content: text(words) });
    const [what, path] = words.split(" ");
    if (what === "story") await this.story(client);
    if (what === "read") {
      const { content } = await client.request(theirs.fs.readTextFile, { sessionId: this.id, path });
      await this.say(client, [content]);
    }
    if (what === "wait") {
      await this.say(client, ["waiting"]);
      await stopped;
      return { stopReason: "cancelled" };
    }
    return { stopReason: "end_turn" };
  }
}

const connection = acp
  .agent({ name: "typescript-v1" })
  .onRequest(ours.initialize, () => ({
    protocolVersion: 1,
    agentInfo: { name: "typescript-v1", version: "1" },
    agentCapabilities: { loadSession: true },
  }))
  .onRequest(ours.session.new, () => {
    const session = new Session(`s${sessions.size}`);
    sessions.set(session.id, session);
    return { sessionId: session.id };
  })
  .onRequest(ours.session.load, async ({ params, client }) => {
    for (const update of sessions.get(params.sessionId).past)
      await client.notify(theirs.session.update, { sessionId: params.sessionId, update });
    return {};
  })
  .onRequest(ours.session.prompt, ({ params, client }) =>
    sessions.get(params.sessionId).prompt(client, params.prompt[0].text),
  )
  .onNotification(ours.session.cancel, ({ params }) => sessions.get(params.sessionId).cancelled())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
