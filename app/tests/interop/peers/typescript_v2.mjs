// The official TypeScript SDK's client, protocol version 2.

import * as acp from "@agentclientprotocol/sdk/experimental/v2";
import { run } from "./story.mjs";

const { agent: theirs, client: ours } = acp.methods;

function makeClient(notes) {
  return acp
    .client({ name: "interop" })
    .onNotification(ours.session.update, ({ params }) => notes.told(params.sessionId, params.update))
    .onRequest(ours.session.requestPermission, ({ params }) => notes.choose(params.title, params.options))
    .onRequest(ours.elicitation.create, ({ params }) => notes.fill(params.message));
}

class Version2 {
  constructor(agent, notes) {
    Object.assign(this, { agent, notes });
  }

  async initialize() {
    const { capabilities } = this.notes;
    const info = { name: "interop", version: "1" };
    return (await this.agent.request(theirs.initialize, { protocolVersion: 2, info, capabilities })).protocolVersion;
  }

  async new(cwd) {
    const answer = await this.agent.request(theirs.session.new, { cwd });
    return [answer.sessionId, values(answer)];
  }

  async prompt(sessionId, text) {
    const mark = this.notes.mark();
    const prompt = [{ type: "text", text }];
    const { messageId } = await this.agent.request(theirs.session.prompt, { sessionId, prompt });
    await this.notes.until(mark, sessionId, (it) => it.state === "idle");
    const told = this.notes.since(mark, sessionId);
    if (!told.some((it) => it.sessionUpdate === "user_message" && it.messageId === messageId))
      throw new Error("the prompt was not shown");
    const end = told.find((it) => it.state === "idle");
    if (JSON.stringify(end).includes("secret")) throw new Error("the end of the turn tells secrets");
    return end.stopReason;
  }

  cancel(sessionId) {
    return this.agent.notify(theirs.session.cancel, { sessionId });
  }

  setMode(sessionId, mode) {
    return this.setOption(sessionId, "mode", mode);
  }

  async setOption(sessionId, configId, value) {
    const type = typeof value === "boolean" ? "boolean" : "id";
    return values(await this.agent.request(theirs.session.setConfigOption, { sessionId, configId, type, value }));
  }

  async list(cursor) {
    const answer = await this.agent.request(theirs.session.list, cursor ? { cursor } : {});
    return { ids: answer.sessions.map((it) => it.sessionId), cursor: answer.nextCursor };
  }

  close(sessionId) {
    return this.agent.request(theirs.session.close, { sessionId });
  }

  async load(sessionId, cwd) {
    const replayFrom = { type: "start" };
    return values(await this.agent.request(theirs.session.resume, { sessionId, cwd, replayFrom }));
  }

  async resume(sessionId, cwd) {
    return values(await this.agent.request(theirs.session.resume, { sessionId, cwd }));
  }

  async fork(sessionId, cwd) {
    return (await this.agent.request("session/fork", { sessionId, cwd })).sessionId; // unstable: known by its name only
  }

  delete(sessionId) {
    return this.agent.request(theirs.session.delete, { sessionId });
  }
}

function values(answer) {
  return Object.fromEntries((answer.configOptions ?? []).map((it) => [it.configId, it.currentValue]));
}

await run(acp, makeClient, Version2);
