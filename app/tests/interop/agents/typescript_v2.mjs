// An agent on the official TypeScript SDK, protocol version 2: it tells a story or waits.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const { agent: ours, client: theirs } = acp.methods;
const sessions = new Map();

const text = (it) => ({ type: "text", text: it });

class Session {
  constructor(id) {
    Object.assign(this, { id, past: [], ids: 0, cancelled: () => {} });
  }

  async tell(client, update) {
    if (update.sessionUpdate !== "state_update") this.past.push(update);
    await client.notify(theirs.session.update, { sessionId: this.id, update });
  }

  async say(client, words) {
    const messageId = `message-${this.ids++}`;
    for (const word of words)
      await this.tell(client, { sessionUpdate: "agent_message_chunk", messageId, content: text(word) });
  }

  async story(client) {
    await this.say(client, ["Let me ", "look. "]);
    const call = { toolCallId: `call-${this.ids++}`, title: "Read thermometer", kind: "read" };
    await this.tell(client, { sessionUpdate: "tool_call_update", status: "pending", ...call });
    const options = [
      { optionId: "yes", name: "Yes", kind: "allow_once" },
      { optionId: "no", name: "No", kind: "reject_once" },
    ];
    await this.tell(client, { sessionUpdate: "state_update", state: "requires_action" });
    const { outcome } = await client.request(theirs.session.requestPermission, {
      sessionId: this.id,
      title: "May I?",
      subject: { type: "tool_call", toolCall: call },
      options,
    });
    await this.tell(client, { sessionUpdate: "state_update", state: "running" });
    const allowed = outcome.outcome === "selected" && outcome.optionId === "yes";
    await this.tell(client, {
      sessionUpdate: "tool_call_content_chunk",
      toolCallId: call.toolCallId,
      content: { type: "content", content: text(allowed ? "21 °C" : "not allowed") },
    });
    await this.tell(client, {
      sessionUpdate: "tool_call_update",
      toolCallId: call.toolCallId,
      status: allowed ? "completed" : "failed",
    });
    await this.say(client, ["Do", "ne."]);
  }

  async perform(client, messageId, prompt) {
    const stopped = new Promise((resolve) => (this.cancelled = resolve));
    await this.tell(client, { sessionUpdate: "user_message", messageId, content: prompt });
    await this.tell(client, { sessionUpdate: "state_update", state: "running" });
    let stopReason = "end_turn";
    if (prompt[0].text === "story") await this.story(client);
    if (prompt[0].text === "wait") {
      await this.say(client, ["waiting"]);
      await stopped;
      stopReason = "cancelled";
    }
    await this.tell(client, { sessionUpdate: "state_update", state: "idle", stopReason });
  }
}

const connection = acp
  .agent({ name: "typescript-v2" })
  .onRequest(ours.initialize, () => ({
    protocolVersion: 2,
    info: { name: "typescript-v2", version: "1" },
    capabilities: { session: {} },
  }))
  .onRequest(ours.session.new, () => {
    const session = new Session(`s${sessions.size}`);
    sessions.set(session.id, session);
    return { sessionId: session.id };
  })
  .onRequest(ours.session.resume, async ({ params, client }) => {
    for (const update of params.replayFrom ? sessions.get(params.sessionId).past : [])
      await client.notify(theirs.session.update, { sessionId: params.sessionId, update });
    return {};
  })
  .onRequest(ours.session.prompt, ({ params, client }) => {
    const session = sessions.get(params.sessionId);
    const messageId = `message-${session.ids++}`;
    setImmediate(() => session.perform(client, messageId, params.prompt));
    return { messageId };
  })
  .onNotification(ours.session.cancel, ({ params }) => sessions.get(params.sessionId).cancelled())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
