// Drives the example server with the published TypeScript SDK 1.x, in 2025-11-25, over HTTP or over
// standard input and output:
//   node sdk1.mjs http://127.0.0.1:8080/mcp
//   node sdk1.mjs http://127.0.0.1:8080/mcp replicas
//   node sdk1.mjs COMMAND [ARGUMENT...]
import assert from 'node:assert/strict';
import { CallToolResultSchema, ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import { connect as connectClient } from './connect1.mjs';
import { stageFailed, step, watchedFetch } from './step.mjs';

const [target, ...args] = process.argv.slice(2);
if (!target) {
  console.error('usage: node sdk1.mjs URL [replicas] | COMMAND [ARGUMENT...]');
  process.exit(2);
}
const http = /^https?:/.test(target);
// The session's own stream and that of tasks/result may be at two replicas. Then tasks/result carries
// the questions.
const replicas = http && args[0] === 'replicas';
const relatedTask = 'io.modelcontextprotocol/related-task';

const pipeline = (branch) => ({ name: 'run_pipeline', arguments: { repository: 'shop', branch } });
const deploy = (service) => ({ name: 'deploy_service', arguments: { service, environment: 'production' } });

// connect makes a client whose person answers questions with answer.
async function connect(options = {}) {
  const peer = { delivered: [], asked: [], errors: [], answer: () => assert.fail('nothing was to be asked') };
  Object.assign(peer, await connectClient(target, args, {
    elicit: async (params, extra) => {
      peer.asked.push(params);
      return peer.answer(params, extra);
    },
    onError: (error) => peer.errors.push(error),
    fetch: watchedFetch(peer.delivered, options),
  }));
  peer.tasks = peer.client.experimental.tasks;
  return peer;
}

// run calls a tool as a task and returns what came of it. The stream creates the
// task, polls it and reads its result, and checks the structured content against
// the tool's output schema.
async function run({ tasks }, call, onCreated = () => {}) {
  const seen = { statuses: [] };
  for await (const message of tasks.callToolStream(call, CallToolResultSchema, { task: { ttl: 60_000 } })) {
    switch (message.type) {
      case 'taskCreated':
        seen.created = message.task;
        await onCreated(message.task);
        break;
      case 'taskStatus':
        seen.statuses.push(message.task.status);
        break;
      default:
        seen[message.type] = message[message.type];
    }
  }
  return seen;
}

// asks calls a tool that asks one question.
async function asks(peer, service, answer) {
  peer.asked.length = peer.delivered.length = 0;
  peer.answer = answer;
  const seen = await run(peer, deploy(service));
  const messages = peer.asked.map((params) => params.message);
  assert.deepEqual(replicas ? [...new Set(messages)] : messages, [`Ship ${service} to production?`]);
  const [question] = peer.asked;
  assert.equal(question._meta[relatedTask].taskId, seen.created.taskId);
  assert.deepEqual(question.requestedSchema.required, ['approve']);
  return seen;
}

async function approve(peer) {
  const seen = await asks(peer, 'api', () => ({ action: 'accept', content: { approve: true } }));
  assert.ifError(seen.error);
  assert.deepEqual(seen.result.structuredContent, { version: '1.4.2' });
}

async function refuse(peer) {
  const { created } = await asks(peer, 'billing', () => ({ action: 'decline' }));
  assert.equal((await peer.tasks.getTask(created.taskId)).status, 'failed');
  const stored = await peer.tasks.getTaskResult(created.taskId, CallToolResultSchema);
  assert.equal(stored.isError, true);
  assert.match(stored.content[0].text, /billing was not shipped/);
}

const peer = await step('connect', async () => {
  const peer = await connect();
  const { tasks } = peer.client.getServerCapabilities();
  assert.deepEqual(tasks.requests, { tools: { call: {} } });
  assert.deepEqual(tasks.cancel, {});
  if (http) {
    assert.equal(peer.transport.protocolVersion, '2025-11-25');
  }
  return peer;
});

await step('list tools', async () => {
  const { tools } = await peer.client.listTools();
  const support = Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport ?? 'forbidden']));
  // With the fallback tools no tool needs to be called as a task, whatever its declaration says.
  assert.deepEqual(support, {
    run_pipeline: 'optional', deploy_service: 'optional', lint_file: 'forbidden',
    task_status: 'forbidden', task_result: 'forbidden', task_cancel: 'forbidden', task_answer: 'forbidden',
    ...(http ? {} : { task_list: 'forbidden' }), // over HTTP nobody signs in
  });
});

const done = await step('call a tool as a task', async () => {
  const seen = await run(peer, pipeline('main'));
  assert.ifError(seen.error);
  assert.equal(seen.created.status, 'working');
  assert.equal(seen.created.ttl, 24 * 3600_000); // the tool's own is the least
  assert.equal(seen.statuses.at(-1), 'completed');
  assert.ok(seen.result.structuredContent.stages.length > 0);
  assert.equal(seen.result._meta[relatedTask].taskId, seen.created.taskId);
  return seen;
});

// A task outlives the stream: its ID is enough to read it again.
await step('read a task again', async () => {
  assert.equal((await peer.tasks.getTask(done.created.taskId)).status, 'completed');
  const stored = await peer.tasks.getTaskResult(done.created.taskId, CallToolResultSchema);
  assert.deepEqual(stored.structuredContent, done.result.structuredContent);
});

// The server offers the list only if it can tell callers apart.
if (peer.client.getServerCapabilities().tasks.list) {
  await step('list tasks', async () => {
    const { tasks } = await peer.tasks.listTasks();
    assert.ok(tasks.some((task) => task.taskId === done.created.taskId));
  });
} else {
  await step('no list for anonymous callers', () =>
    assert.rejects(peer.tasks.listTasks(), { code: ErrorCode.MethodNotFound }));
}

await step('cancel a task', async () => {
  let taskId;
  const seen = await run(peer, pipeline('slow'), async (task) => {
    taskId = task.taskId;
    assert.equal((await peer.tasks.cancelTask(taskId)).status, 'cancelled');
  });
  assert.deepEqual(seen.statuses, ['cancelled']);
  assert.match(seen.error.message, /was cancelled/); // the SDK's word for a task without a result
  await assert.rejects(peer.tasks.cancelTask(taskId), { code: ErrorCode.InvalidParams });
});

await step('an unknown task is refused', () =>
  assert.rejects(peer.tasks.getTask('no-such-task'), { code: ErrorCode.InvalidParams }));

await step('call a tool that is never a task', async () => {
  const lint = await peer.client.callTool({ name: 'lint_file', arguments: { path: 'main.go' } });
  assert.ok(Array.isArray(lint.structuredContent.findings));
});

await step('the code of a typed error', async () => {
  const { created } = await run(peer, pipeline('broken'));
  const { isError, _meta } = await peer.tasks.getTaskResult(created.taskId, CallToolResultSchema);
  assert.equal(isError, true);
  assert.deepEqual(_meta['io.github.mcptaskgen/error'], stageFailed);
});

await step('answer a question', async () => {
  await approve(peer);
  if (http && !replicas) { // replicas leave it to tasks/result, but not if the machine is slow at that moment
    assert.deepEqual(peer.delivered, [{ via: 'GET', message: 'Ship api to production?' }]);
  }
});

await step('refuse a question', () => refuse(peer));

// The person has not answered yet: the cancel takes the question back.
await step('cancel a task that asks', async () => {
  let takenBack;
  const asked = new Promise((resolve) => {
    peer.answer = (_, { signal }) => {
      takenBack = new Promise((back) => signal.addEventListener('abort', back));
      resolve();
      return takenBack.then(() => ({ action: 'cancel' }));
    };
  });
  const seen = await run(peer, deploy('api'), async ({ taskId }) => {
    await asked;
    assert.equal((await peer.tasks.getTask(taskId)).status, 'input_required');
    assert.equal((await peer.tasks.cancelTask(taskId)).status, 'cancelled');
    await takenBack;
  });
  assert.match(seen.error.message, /was cancelled/);
});

if (http) {
  const deaf = await connect({ standalone: false });
  await step("answer a question on the result's stream", async () => {
    await approve(deaf);
    assert.deepEqual(deaf.delivered, [{ via: 'tasks/result', message: 'Ship api to production?' }]);
  });
  await step("refuse a question on the result's stream", async () => {
    await refuse(deaf);
    assert.deepEqual(deaf.delivered, [{ via: 'tasks/result', message: 'Ship billing to production?' }]);
  });
  await step('end the session', async () => {
    for (const { transport, client, errors } of [peer, deaf]) {
      assert.deepEqual(errors, []);
      await transport.terminateSession();
      await client.close();
    }
  });
} else {
  await step('the end of its input ends the server', async () => {
    assert.deepEqual(peer.errors, []); // nothing but protocol on its output
    const server = peer.transport._process; // the SDK does not tell how it ended
    await peer.client.close();
    assert.deepEqual([server.exitCode, server.signalCode], [0, null]);
  });
}
