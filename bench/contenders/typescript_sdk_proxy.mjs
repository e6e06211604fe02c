// The official TypeScript SDK as a proxy: a connection to the agent and one to the client, and nothing is stored.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { agent: theirs, client: ours } = acp.methods;
const [, , , command, ...args] = process.argv; // the first is the store, which nobody needs here
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
let client;

const toAgent = acp
  .client({ name: "bench" })
  .onNotification(ours.session.update, ({ params }) => client.notify(ours.session.update, params))
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));

const app = acp.agent({ name: "bench" });
for (const method of [theirs.initialize, theirs.session.new, theirs.session.prompt]) {
  app.onRequest(method, ({ params, client: from }) => {
    client = from;
    return toAgent.agent.request(method, params);
  });
}
const toClient = app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await toClient.closed;
child.kill();
process.exit();
