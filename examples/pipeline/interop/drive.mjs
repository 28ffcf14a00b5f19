// Does with a published TypeScript client what the lines of its input say:
//   node drive.mjs 1 2025-11-25 URL
//   node drive.mjs 2 2025-11-25|2026-07-28 URL
//   node drive.mjs 1|2 2025-11-25 COMMAND [ARGUMENT...]
// A line is a JSON object with op, tool, args, answer and line. What it prints for each is one too: what the client got, as
// text, and the id of a task.
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import * as sdk1 from './connect1.mjs';
import * as sdk2 from './connect2.mjs';

const [version, revision, target, ...args] = process.argv.slice(2);
const now = {}; // the line that is being done
const people = {
  elicit: () => ({ action: 'accept', content: now.answer }),
  sample: () => ({ role: 'assistant', model: 'interop', content: { type: 'text', text: now.line } }),
  onError: (error) => console.error(error),
};

// A program on the SDK 1.x. Questions come in plain calls and in tasks.
class Program1 {
  async open() {
    ({ client: this.client } = await sdk1.connect(target, args, people));
    await this.list(); // so that it checks results against the tools' schemas
  }

  list() { return this.client.listTools(); }

  call({ tool, args }) { return this.client.callTool({ name: tool, arguments: args }); }

  async start({ tool, args }) {
    const stream = this.client.experimental.tasks.callToolStream({ name: tool, arguments: args }, CallToolResultSchema, { task: {} });
    const { value } = await stream.next();
    return { ...value, id: value.task?.taskId };
  }

  async result({ id }) {
    const { tasks } = this.client.experimental;
    for (;;) {
      const { status, pollInterval } = await tasks.getTask(id);
      if (!['working', 'input_required'].includes(status)) {
        return tasks.getTaskResult(id, CallToolResultSchema);
      }
      await pause(pollInterval);
    }
  }

  cancel({ id }) { return this.client.experimental.tasks.cancelTask(id); }
}

// A program on the client 2.x. Questions come in tasks.
class Program2 {
  async open() {
    ({ client: this.client, session: this.session } = await sdk2.connect(target, args, revision, people));
    await this.list();
  }

  list() { return this.client.listTools(); }

  async call({ tool, args, answer, line }) {
    if (!answer && !line) {
      return this.client.callTool({ name: tool, arguments: args });
    }
    return settled(await this.session.callTool(tool, args));
  }

  async start({ tool, args }) {
    this.execution = await this.session.callTool(tool, args, { task: { preference: 'require' } });
    this.reference = JSON.stringify(this.execution.serializeReference());
    return { id: this.execution.handle.taskId };
  }

  async result() {
    this.execution ??= await this.session.resumeTask(JSON.parse(this.reference));
    const execution = this.execution;
    this.execution = undefined;
    return settled(execution);
  }

  cancel() { return this.execution.cancel(); }
}

async function settled(execution) {
  const { outcome } = await execution.settle();
  return resultFromTaskOutcome(outcome);
}

// perform does what a line says. If the server was away, it connects again: a program that has the ID of a task can.
async function perform(program, line) {
  Object.assign(now, { answer: undefined, line: undefined }, line);
  for (let tries = 20; ; tries--) {
    try {
      return await program[line.op](line);
    } catch (error) {
      if (line.op !== 'result' || error.code === -32602 || tries === 0) {
        throw error;
      }
      console.error(error);
      await pause(500);
      await program.open().catch(people.onError);
    }
  }
}

const program = version === '1' ? new Program1() : new Program2();
await program.open();
console.log('{}');
for await (const text of createInterface({ input: process.stdin })) {
  const reply = await perform(program, JSON.parse(text)).catch((error) => ({ error: String(error) }));
  console.log(JSON.stringify({ text: JSON.stringify(reply), id: reply?.id }));
}
process.exit(0);
