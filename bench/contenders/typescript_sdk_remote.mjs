// The official TypeScript SDK's server, which stores nothing: the port is on stdout. As `ours_remote.py`.

import { createServer } from "node:http";
import * as acp from "@agentclientprotocol/sdk";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { WebSocketServer } from "ws";

const BURST = 64;
const TEXT = "a few words of an answer, say 32";

const chunk = (sessionId) => ({
  sessionId,
  update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: TEXT } },
});

const turns = {
  async burst(client, sessionId, count) {
    for (let i = 0; i < count / BURST; i++) {
      const sent = [];
      for (let j = 0; j < BURST; j++) sent.push(client.notify(acp.methods.client.session.update, chunk(sessionId)));
      await Promise.all(sent);
    }
  },
  async tick(client, sessionId, count) {
    for (let i = 0; i < count; i++) {
      await client.notify(acp.methods.client.session.update, chunk(sessionId));
      await new Promise(setImmediate);
    }
  },
};

const makeAgent = () =>
  acp
    .agent({ name: "bench" })
    .onRequest(acp.methods.agent.initialize, ({ params }) => ({ protocolVersion: params.protocolVersion }))
    .onRequest(acp.methods.agent.session.new, () => ({ sessionId: "sess_0123456789abcdef" }))
    .onRequest(acp.methods.agent.session.prompt, async ({ params, client }) => {
      const [what, count] = params.prompt[0].text.split(" ");
      await turns[what]?.(client, params.sessionId, Number(count));
      return { stopReason: "end_turn" };
    });

const server = new AcpServer({ createAgent: makeAgent });
const http = createServer(createNodeHttpHandler(server));
http.on("upgrade", createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true, perMessageDeflate: false })));
http.listen(0, "127.0.0.1", () => console.log(http.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
