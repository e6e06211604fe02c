// The official TypeScript SDK as an agent. The prompt says what to do, as in `ours_agent.py`.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { Meter } from "./meter.mjs";

const BURST = 256;
const TEXT = "a few words of an answer, say 32";
const meter = new Meter();

const chunk = (sessionId) => ({
  sessionId,
  update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: TEXT } },
});

const turns = {
  async burst(client, sessionId, count) {
    for (let i = 0; i < count / BURST; i++) {
      const sent = [];
      for (let j = 0; j < BURST; j++) {
        sent.push(client.notify(acp.methods.client.session.update, chunk(sessionId)));
      }
      await Promise.all(sent);
    }
  },
  async tick(client, sessionId, count) {
    for (let i = 0; i < count; i++) {
      await client.notify(acp.methods.client.session.update, chunk(sessionId));
      await new Promise(setImmediate);
    }
  },
  async ask(client, sessionId, count) {
    const took = [];
    for (let i = 0; i < count; i++) {
      const asked = performance.now();
      const answer = await client.request(acp.methods.client.fs.readTextFile, { sessionId, path: "/notes.txt" });
      took.push(performance.now() - asked);
      if (!answer.content) throw new Error("no answer");
    }
    took.sort((a, b) => a - b);
    meter.more[`p50 of ${count}`] = took[took.length >> 1] / 1e3;
  },
};

const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
const connection = acp
  .agent({ name: "bench" })
  .onRequest(acp.methods.agent.initialize, ({ params }) => ({ protocolVersion: params.protocolVersion }))
  .onRequest(acp.methods.agent.session.new, () => ({ sessionId: "sess_0123456789abcdef" }))
  .onRequest(acp.methods.agent.session.prompt, async ({ params, client }) => {
    const text = params.prompt[0].text;
    if (text !== "nothing") {
      meter.lap(text);
      const [what, count] = text.split(" ");
      await turns[what]?.(client, params.sessionId, Number(count));
    }
    return { stopReason: "end_turn" };
  })
  .connect(stream);
await connection.closed;
meter.report();
