// The official TypeScript SDK as a client. Each argument is the text of a prompt, as in `ours_client.py`.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { Meter } from "./meter.mjs";

const meter = new Meter();
let handled = 0;

const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
await acp
  .client({ name: "bench" })
  .onNotification(acp.methods.client.session.update, async ({ params }) => {
    if (params.update.sessionUpdate === "agent_message_chunk") handled += 1;
  })
  .connectWith(stream, async (agent) => {
    await agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: "/", mcpServers: [] });
    for (const text of process.argv.slice(2)) {
      handled = 0;
      meter.lap(text);
      await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
      while (handled < Number(text.split(" ")[1])) {
        await new Promise(setImmediate); // the answer may overtake what came before it
      }
      meter.lap(null);
    }
  });
meter.report();
process.exit();
