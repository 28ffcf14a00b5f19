// Drives the example server with the published TypeScript client 2.x and its package for tasks, over
// HTTP, in either revision:
//   node client2.mjs http://127.0.0.1:8080/mcp 2025-11-25
//   node client2.mjs http://127.0.0.1:8080/mcp 2026-07-28
import assert from 'node:assert/strict';
import { resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { connect } from './connect2.mjs';
import { stageFailed, step, watchedFetch } from './step.mjs';

const [url, revision] = process.argv.slice(2);
if (!url || !['2025-11-25', '2026-07-28'].includes(revision)) {
  console.error('usage: node client2.mjs URL 2025-11-25|2026-07-28');
  process.exit(2);
}
const modern = revision === '2026-07-28';
const delivery = modern ? 'task-update' : 'peer-request';

const errors = [];
// A task's status that is pushed while the client polls the task makes it give the poll up, and say so
// when the reply comes.
const givenUp = /^Received a response for an unknown message ID: .*"result":{.*"taskId":/;
const onError = (error) => modern || !givenUp.test(error.message) ? errors.push(error) : undefined;

// What questions came, on which streams, and what the person does about them.
const delivered = [];
const asked = [];
let answer;

const { client, transport, session } = await step('connect', async () => {
  const connected = await connect(url, [], revision, {
    elicit: (params, context) => {
      asked.push({ ...context, message: params.message });
      return answer(context);
    },
    onError,
    fetch: watchedFetch(delivered),
  });
  const { client, session } = connected;
  assert.equal(client.getNegotiatedProtocolVersion(), revision);
  assert.equal(session.capabilities.execution, true);
  assert.equal(session.capabilities.cancellation, true);
  return connected;
});

// With the fallback tools no tool has to be called as a task. A call becomes one in
// 2025-11-25 if the client wants one, in 2026-07-28 if the server does.
const call = (name, args) => session.callTool(name, args, { task: { preference: 'require', retentionMs: 60_000 } });
const pipeline = (branch) => call('run_pipeline', { repository: 'shop', branch });
const deploy = (service) => call('deploy_service', { service, environment: 'production' });

const done = await step('call a tool as a task', async () => {
  const execution = await pipeline('main');
  assert.equal(execution.kind, 'task');
  const statuses = [];
  const { outcome } = await execution.settle({
    onEvent: (event) => event.type === 'task' && statuses.push(event.task.status),
  });
  const { structuredContent } = resultFromTaskOutcome(outcome);
  assert.deepEqual([statuses.at(0), statuses.at(-1)], ['working', 'completed']);
  assert.ok(structuredContent.stages.length > 0);
  return { taskId: execution.handle.taskId, structuredContent };
});

await step('read a task again', async () => {
  const task = session.task(done.taskId);
  assert.equal((await task.snapshot()).status, 'completed');
  assert.deepEqual(resultFromTaskOutcome(await task.result()).structuredContent, done.structuredContent);
});

await step('take a task up by its reference', async () => {
  const execution = await pipeline('main');
  const reference = execution.serializeReference();
  await execution.detach(); // the task goes on
  await execution.result(); // and has no owner here now
  const resumed = await session.resumeTask(JSON.parse(JSON.stringify(reference)));
  const { outcome } = await resumed.settle();
  assert.ok(resultFromTaskOutcome(outcome).structuredContent.stages.length > 0);
});

await step('a failed task', async () => {
  const { outcome } = await (await pipeline('broken')).settle();
  assert.match(failure(outcome), modern ? /frobnicate/ : /./);
  if (modern) {
    assert.deepEqual(resultFromTaskOutcome(outcome)._meta['io.github.mcptaskgen/error'], stageFailed);
  }
});

await step('cancel a task', async () => {
  const execution = await pipeline('slow');
  await execution.cancel();
  assert.equal((await execution.settle()).outcome.status, 'cancelled');
  await ended(execution, 'cancelled');
});

await step('an unknown task is refused', () =>
  assert.rejects(session.task('no-such-task').snapshot(), { code: -32602 }));

await step('call a tool that is never a task', async () => {
  const execution = await session.callTool('lint_file', { path: 'main.go' });
  assert.equal(execution.kind, 'immediate');
  const { outcome } = await execution.settle();
  assert.ok(Array.isArray(resultFromTaskOutcome(outcome).structuredContent.findings));
});

await step('answer a question', async () => {
  const { outcome } = await asks('api', () => ({ action: 'accept', content: { approve: true } }));
  assert.deepEqual(resultFromTaskOutcome(outcome).structuredContent, { version: '1.4.2' });
});

await step('refuse a question', async () => {
  const { outcome } = await asks('billing', () => ({ action: 'decline' }));
  assert.match(failure(outcome), /billing was not shipped/);
});

await step('cancel a task that asks', async () => {
  const waiting = new Promise((resolve) => {
    answer = ({ signal }) => {
      resolve();
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ action: 'cancel' })));
    };
  });
  const execution = await deploy('api');
  await waiting;
  assert.equal((await session.task(execution.handle.taskId).snapshot()).status, 'input_required');
  await execution.cancel();
  assert.equal((await execution.settle()).outcome.status, 'cancelled');
  await ended(execution, 'cancelled');
});

await step('end the session', async () => {
  assert.deepEqual(errors, []);
  await session.close();
  await transport.terminateSession();
  await client.close();
});

// asks calls a tool that asks one question, which this client sees once.
async function asks(service, how) {
  asked.length = delivered.length = 0;
  answer = how;
  const execution = await deploy(service);
  assert.equal(execution.kind, 'task');
  const settled = await execution.settle();
  const message = `Ship ${service} to production?`;
  assert.deepEqual(asked.map((question) => [question.message, question.scope, question.delivery, question.taskId]),
    [[message, 'task', delivery, execution.handle.taskId]]);
  // Before a task ends this client reads no result, so only the session's own stream is there.
  assert.deepEqual(delivered, modern ? [] : [{ via: 'GET', message }]);
  return settled;
}

// failure is what a client tells of a tool error: in 2025-11-25 a failed task's
// message, in 2026-07-28 the result of a completed one.
function failure(outcome) {
  if (!modern) {
    assert.equal(outcome.status, 'failed');
    return outcome.error.message;
  }
  const { isError, content } = resultFromTaskOutcome(outcome);
  assert.equal(isError, true);
  return content[0].text;
}

// ended waits for a status: in 2026-07-28 a cancel is acknowledged before it is done.
async function ended({ handle }, status) {
  const task = session.task(handle.taskId);
  const { status: last } = await task.result();
  assert.equal(last, status);
}
