// The official TypeScript SDK's client, told line by line what to do: JSON lines in on stdin, out on stdout.
//
// In:  {"id", "method", "params"} a request to the agent · {"method", "params"} a notification
//      {"allow": "allow_once"} how permission requests are answered from now on; null leaves them open
// Out: {"id", "result"} or {"id", "error"} · {"update": {sessionId, update}} · {"asked": {…}} · {"withdrawn": {…}} a question
//      · {"file": {…}} · {"exit": code}

import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

const { version, command, cwd, fs } = JSON.parse(process.argv[2]);
const acp = await import(version === 2 ? "@agentclientprotocol/sdk/experimental/v2" : "@agentclientprotocol/sdk");
const { client: ours } = acp.methods;
let allow = "allow_once";

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

function answer(params, signal) {
  say({ asked: params });
  signal.addEventListener("abort", () => say({ withdrawn: params }));
  if (allow === null) return new Promise(() => {});
  const option = params.options.find((it) => it.kind === allow) ?? params.options.find((it) => it.kind.startsWith(allow.split("_")[0]));
  return option ? { outcome: { outcome: "selected", optionId: option.optionId } } : { outcome: { outcome: "cancelled" } };
}

let client = acp
  .client({ name: "field" })
  .onNotification(ours.session.update, ({ params }) => say({ update: params }))
  .onRequest(ours.session.requestPermission, ({ params, signal }) => answer(params, signal));
if (version === 1 && fs) {
  client = client
    .onRequest(ours.fs.readTextFile, async ({ params }) => {
      say({ file: { read: params.path } });
      return { content: await readFile(params.path, "utf8") };
    })
    .onRequest(ours.fs.writeTextFile, async ({ params }) => {
      say({ file: { written: params.path } });
      await writeFile(params.path, params.content);
      return {};
    });
}

const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"], cwd });
child.on("exit", (code, signal) => say({ exit: signal ?? code }));
child.stdin.on("error", () => {});
say({ pid: child.pid });
const connection = client.connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));

const lines = createInterface({ input: process.stdin });
lines.on("line", async (line) => {
  const told = JSON.parse(line);
  if ("allow" in told) allow = told.allow;
  else if (!("id" in told)) await connection.agent.notify(told.method, told.params).catch(() => {});
  else
    await connection.agent.request(told.method, told.params).then(
      (result) => say({ id: told.id, result: result ?? null }),
      (error) => say({ id: told.id, error: { code: error.code ?? null, message: String(error.message ?? error), data: error.data ?? null } }),
    );
});
lines.on("close", () => {
  child.stdin.end();
  const kill = setTimeout(() => child.kill("SIGTERM"), 3000);
  child.on("exit", () => clearTimeout(kill));
  if (child.exitCode !== null || child.signalCode !== null) clearTimeout(kill);
});
process.on("uncaughtException", (error) => say({ fault: String(error) }));
process.on("unhandledRejection", (error) => say({ fault: String(error) }));
