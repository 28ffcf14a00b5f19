// Drives the replicas of examples/cluster with the published TypeScript SDK 1.x, in one session of
// 2025-11-25, of which one is killed:
//   node replicas.mjs URL TOKEN
// It prints "kill" when all replicas are at work, and goes on when it reads a line.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, CreateTaskResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { step } from './step.mjs';

const [url, token] = process.argv.slice(2);
if (!token) {
  console.error('usage: node replicas.mjs URL TOKEN');
  process.exit(2);
}

// How long the tasks of the killed replica may take: they wait for its lease, of 30 seconds.
const afterKill = 100_000;

const client = new Client({ name: 'replicas', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
const tasks = client.experimental.tasks;
const asked = [];
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  asked.push(params.message);
  return { action: 'accept', content: { agree: true } };
});

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// replicaOf reads which replica works on a task.
const replicaOf = async (taskId) => /^on replica (\d)/.exec((await tasks.getTask(taskId)).statusMessage ?? '')?.[1];

// settle polls a task until its end. A request that the killed replica had taken has no answer.
async function settle(taskId) {
  for (;;) {
    try {
      const { status } = await tasks.getTask(taskId);
      if (status !== 'working') {
        assert.equal(status, 'completed');
        return (await tasks.getTaskResult(taskId, CallToolResultSchema)).structuredContent;
      }
    } catch (error) {
      if (error instanceof assert.AssertionError || typeof error.code === 'number' && error.code < 0) {
        throw error;
      }
    }
    await pause(200);
  }
}

await step('connect', () => client.connect(transport));

const started = await step('start tasks on all replicas', async () => {
  const ids = [];
  for (const at = new Set(); at.size < 3;) {
    const params = { name: 'render_film', arguments: { film: `film ${ids.length}`, frames: 80 }, task: { ttl: 600_000 } };
    const { task } = await client.request({ method: 'tools/call', params }, CreateTaskResultSchema);
    ids.push(task.taskId);
    let replica;
    while (!(replica = await replicaOf(task.taskId))) {
      await pause(50);
    }
    at.add(replica);
  }
  return ids;
});

console.log('kill');
const input = createInterface({ input: process.stdin });
await new Promise((resolve) => input.once('line', resolve));
input.close();

await step('all tasks end', async () => {
  const films = await Promise.all(started.map(settle));
  assert.deepEqual(films.map(({ film }) => film), started.map((_, i) => `film ${i}`));
  assert.ok(films.some(({ run }) => run === 2), 'no task ran again');
  assert.ok(films.every(({ run }) => run <= 2));
}, afterKill);

await step('read all tasks again', async () => {
  for (const taskId of started) {
    assert.equal((await tasks.getTask(taskId)).status, 'completed');
  }
  const listed = (await tasks.listTasks()).tasks.map(({ taskId }) => taskId);
  assert.deepEqual(listed.filter((taskId) => started.includes(taskId)).sort(), [...started].sort());
});

await step('answer a question', async () => {
  const call = { name: 'publish_film', arguments: { film: 'last', copies: 1 } };
  let result;
  for await (const message of tasks.callToolStream(call, CallToolResultSchema, { task: { ttl: 60_000 } })) {
    assert.notEqual(message.type, 'error', String(message.error));
    result = message.result;
  }
  assert.equal(result.structuredContent.film, 'last');
  assert.deepEqual(asked, ['Publish last?']);
});

await step('end the session', async () => {
  await transport.terminateSession();
  await client.close();
});
