// Drives the example server with the published TypeScript SDK, over 2025-11-25:
//   node client.mjs http://127.0.0.1:8080/mcp
// Every step that passes prints one line; the first that does not ends the program with status 1.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ErrorCode } from '@modelcontextprotocol/sdk/types.js';

const url = process.argv[2];
if (!url) {
  console.error('usage: node client.mjs URL');
  process.exit(2);
}
const pipeline = (branch) => ({ name: 'run_pipeline', arguments: { repository: 'shop', branch } });
const passed = (step) => console.log(`pass: ${step}`);

const client = new Client({ name: 'interop', version: '1.0.0' }, { capabilities: {} });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
assert.equal(transport.protocolVersion, '2025-11-25');
const { tasks: capability } = client.getServerCapabilities();
assert.deepEqual(capability.requests, { tools: { call: {} } });
assert.deepEqual(capability.cancel, {});
passed('connect');

const { tools } = await client.listTools();
const support = Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport ?? 'forbidden']));
// With fallback=tools no tool needs to be called as a task, whatever its declaration says.
assert.deepEqual(support, {
  run_pipeline: 'optional', deploy_service: 'optional', lint_file: 'forbidden',
  task_status: 'forbidden', task_result: 'forbidden', task_cancel: 'forbidden', task_answer: 'forbidden',
});
passed('list tools');

// The stream creates the task, polls it and reads its result; the SDK checks
// the structured content against the tool's output schema.
const statuses = [];
let created;
let result;
for await (const message of client.experimental.tasks.callToolStream(pipeline('main'), CallToolResultSchema, { task: { ttl: 60_000 } })) {
  switch (message.type) {
    case 'taskCreated':
      created = message.task;
      break;
    case 'taskStatus':
      statuses.push(message.task.status);
      break;
    case 'result':
      result = message.result;
      break;
    default:
      throw message.error;
  }
}
assert.equal(created.status, 'working');
assert.equal(created.ttl, 60_000);
assert.equal(statuses.at(-1), 'completed');
assert.ok(result.structuredContent.stages.length > 0);
assert.equal(result._meta['io.modelcontextprotocol/related-task'].taskId, created.taskId);
passed('call a tool as a task');

// A task outlives the stream: its ID is enough to read it again.
const again = await client.experimental.tasks.getTask(created.taskId);
assert.equal(again.status, 'completed');
const stored = await client.experimental.tasks.getTaskResult(created.taskId, CallToolResultSchema);
assert.deepEqual(stored.structuredContent, result.structuredContent);
passed('read a task again');

// The list is there only where callers can be told apart.
if (capability.list) {
  const { tasks } = await client.experimental.tasks.listTasks();
  assert.ok(tasks.some((task) => task.taskId === created.taskId));
} else {
  await assert.rejects(client.experimental.tasks.listTasks(), { code: ErrorCode.MethodNotFound });
}
passed(capability.list ? 'list tasks' : 'no list for anonymous callers');

const stream = client.experimental.tasks.callToolStream(pipeline('slow'), CallToolResultSchema, { task: {} });
const first = await stream.next();
assert.equal(first.value.type, 'taskCreated');
const { taskId } = first.value.task;
const cancelled = await client.experimental.tasks.cancelTask(taskId);
assert.equal(cancelled.status, 'cancelled');
assert.equal((await client.experimental.tasks.getTask(taskId)).status, 'cancelled');
await assert.rejects(client.experimental.tasks.cancelTask(taskId), { code: ErrorCode.InvalidParams });
let last;
for await (const message of stream) {
  last = message;
}
assert.equal(last.type, 'error'); // the SDK's word for a task without a result
passed('cancel a task');

await assert.rejects(client.experimental.tasks.getTask('no-such-task'), { code: ErrorCode.InvalidParams });
passed('an unknown task is refused');

const lint = await client.callTool({ name: 'lint_file', arguments: { path: 'main.go' } });
assert.ok(Array.isArray(lint.structuredContent.findings));
passed('call a tool that is never a task');

await client.close();
