// Calls tools of servers with the published TypeScript clients, all at the same time:
//   node adopted.mjs ORDERS
// ORDERS is a JSON object with the calls short and long, and with runs: each has sdk (1 or 2), revision, and as target a
// URL, or a command and its arguments. A run makes the calls as programs without tasks do, or the long one as a task if it
// has asTask. If the client has missed a report of the long call, of which there are as many as reports says, or all of a
// task, the run makes the call again, up to as often as tries says. The output is a JSON list with what each run got.
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import * as sdk1 from './connect1.mjs';
import * as sdk2 from './connect2.mjs';

const { short, long, reports, tries, runs } = JSON.parse(process.argv[2]);
const retention = 60_000;
const people = {
  elicit: () => { throw new Error('nothing was to be asked'); },
  onError: (error) => console.error(error),
};

// A program on the SDK 1.x.
class Program1 {
  async open({ target: [target, ...args] }) {
    ({ client: this.client } = await sdk1.connect(target, args, people));
  }

  call(request, onprogress) {
    return this.client.callTool(request, CallToolResultSchema, { onprogress });
  }

  async callAsTask(request, onTask) {
    const options = { task: { ttl: retention } };
    for await (const event of this.client.experimental.tasks.callToolStream(request, CallToolResultSchema, options)) {
      if (event.task) {
        onTask(event.task);
      }
      if (event.type === 'error') {
        throw event.error;
      }
      if (event.type === 'result') {
        return event.result;
      }
    }
    throw new Error('the stream ended without a result');
  }
}

// A program on the client 2.x.
class Program2 {
  async open({ revision, target: [target, ...args] }) {
    ({ client: this.client, session: this.session } = await sdk2.connect(target, args, revision, people));
  }

  call(request, onprogress) {
    return this.client.callTool(request, { onprogress });
  }

  async callAsTask(request, onTask) {
    const execution = await this.session.callTool(request.name, request.arguments, {
      task: { preference: 'require', retentionMs: retention },
    });
    const { outcome } = await execution.settle({ onEvent: (event) => event.type === 'task' && onTask(event.task) });
    return resultFromTaskOutcome(outcome);
  }
}

async function perform(run) {
  const program = run.sdk === 1 ? new Program1() : new Program2();
  await program.open(run);
  const { tools } = await program.client.listTools();
  const done = { tools, short: [], messages: [] };
  for (const request of run.asTask ? [] : short) {
    done.short.push(await program.call(request));
  }
  for (let left = tries; left > 0 && done.messages.length < (run.asTask ? 1 : reports); left--) {
    done.messages = [];
    if (run.asTask) {
      done.result = await program.callAsTask(long, ({ statusMessage }) => statusMessage && done.messages.push(statusMessage));
    } else {
      done.result = await program.call(long, ({ message }) => done.messages.push(message));
    }
  }
  await program.client.close();
  return done;
}

console.log(JSON.stringify(await Promise.all(runs.map(perform))));
process.exit(0);
