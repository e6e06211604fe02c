// The official TypeScript SDK's client, protocol version 1.

import * as acp from "@agentclientprotocol/sdk";
import { run } from "./story.mjs";

const { agent: theirs, client: ours } = acp.methods;

function makeClient(notes) {
  return acp
    .client({ name: "interop" })
    .onNotification(ours.session.update, ({ params }) => notes.told(params.sessionId, params.update))
    .onRequest(ours.session.requestPermission, ({ params }) => notes.choose(params.toolCall.title, params.options))
    .onRequest(ours.elicitation.create, ({ params }) => notes.fill(params.message));
}

class Version1 {
  constructor(agent, notes) {
    Object.assign(this, { agent, notes });
  }

  async initialize() {
    const clientCapabilities = this.notes.capabilities;
    const clientInfo = { name: "interop", version: "1" };
    const answer = await this.agent.request(theirs.initialize, { protocolVersion: 1, clientCapabilities, clientInfo });
    return answer.protocolVersion;
  }

  async new(cwd) {
    const answer = await this.agent.request(theirs.session.new, { cwd, mcpServers: [] });
    const options = values(answer);
    if (options.mode !== answer.modes.currentModeId) throw new Error("modes and options differ");
    return [answer.sessionId, options];
  }

  async prompt(sessionId, text) {
    try {
      const prompt = [{ type: "text", text }];
      return (await this.agent.request(theirs.session.prompt, { sessionId, prompt })).stopReason;
    } catch (error) {
      if (!(error instanceof acp.RequestError) || JSON.stringify(error).includes("secret")) throw error;
      return "error";
    }
  }

  cancel(sessionId) {
    return this.agent.notify(theirs.session.cancel, { sessionId });
  }

  setMode(sessionId, modeId) {
    return this.agent.request(theirs.session.setMode, { sessionId, modeId });
  }

  async setOption(sessionId, configId, value) {
    const typed = typeof value === "boolean" ? { type: "boolean", value } : { value };
    return values(await this.agent.request(theirs.session.setConfigOption, { sessionId, configId, ...typed }));
  }

  async list(cursor) {
    const answer = await this.agent.request(theirs.session.list, cursor ? { cursor } : {});
    return { ids: answer.sessions.map((it) => it.sessionId), cursor: answer.nextCursor };
  }

  close(sessionId) {
    return this.agent.request(theirs.session.close, { sessionId });
  }

  async load(sessionId, cwd) {
    return values(await this.agent.request(theirs.session.load, { sessionId, cwd, mcpServers: [] }));
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
  return Object.fromEntries((answer.configOptions ?? []).map((it) => [it.id, it.currentValue]));
}

await run(acp, makeClient, Version1);
