// Drives the server of examples/oauth with a published TypeScript client, which signs its user in:
//   node oauth.mjs 1 2025-11-25 http://127.0.0.1:8080/mcp
//   node oauth.mjs 2 2025-11-25|2026-07-28 http://127.0.0.1:8080/mcp
import assert from 'node:assert/strict';
import * as sdk2 from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { rawDispatch } from './dispatch.mjs';
import { Person } from './person.mjs';
import { step } from './step.mjs';

const [version, revision, url] = process.argv.slice(2);
const clientInfo = { name: 'interop', version: '1.0.0' };
const release = { service: 'billing', version: '1.4.2' };

// A user of the SDK 1.x.
class User1 {
  constructor(name) { this.person = new Person(name); }

  async connect() {
    await this.allowed(() => {
      this.client = new Client(clientInfo, { capabilities: {} });
      this.transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: this.person });
      return this.client.connect(this.transport);
    });
  }

  allowed(work) { return this.person.allowed(() => this.transport, work); }

  call(name, args = {}) { return this.allowed(() => this.client.callTool({ name, arguments: args })); }

  // start calls a tool as a task, and returns a function that waits for its result.
  async start(name, args) {
    return this.allowed(async () => {
      const stream = this.client.experimental.tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { task: {} });
      const { value } = await stream.next();
      if (value.type === 'error') {
        throw value.error;
      }
      assert.equal(value.type, 'taskCreated');
      return async () => {
        for await (const message of stream) {
          assert.notEqual(message.type, 'error', message.error?.message);
          if (message.type === 'result') {
            return message.result;
          }
        }
      };
    });
  }
}

// A user of the client 2.x with its package for tasks.
class User2 {
  constructor(name) { this.person = new Person(name); }

  async connect() {
    const modern = revision === '2026-07-28';
    await this.allowed(() => {
      this.client = new sdk2.Client(clientInfo, {
        capabilities: {}, versionNegotiation: modern ? { mode: { pin: revision } } : { mode: 'legacy' },
      });
      this.transport = new sdk2.StreamableHTTPClientTransport(new URL(url), { authProvider: this.person });
      return this.client.connect(this.transport);
    });
    this.session = createTaskSessionFromClient(this.client, {
      endpointId: 'interop',
      ...(modern && {
        rawDispatch: rawDispatch(url, () => ({ Authorization: `Bearer ${this.person.kept.access_token}` })),
        v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities: {} },
      }),
    });
  }

  allowed(work) { return this.person.allowed(() => this.transport, work); }

  call(name, args = {}) { return this.allowed(() => this.client.callTool({ name, arguments: args })); }

  async start(name, args) {
    if (revision === '2026-07-28') { // the package sends its calls beside the client, and only the client asks for scopes
      assert.equal((await this.call(name, { ...args, service: 'web' })).isError, true); // alice may not ship it
    }
    const execution = await this.allowed(() => this.session.callTool(name, args, { task: { preference: 'require' } }));
    assert.equal(execution.kind, 'task');
    return async () => resultFromTaskOutcome((await execution.settle()).outcome);
  }
}

const User = version === '1' ? User1 : User2;
const [alice, bob] = [new User('alice'), new User('bob')];

await step('sign in', async () => {
  await alice.connect();
  await bob.connect();
  assert.deepEqual(alice.person.asked, ['releases']);
  const { tools } = await alice.client.listTools();
  assert.ok(tools.some(({ name }) => name === 'ship_release'));
});

await step('ask for the scope of a tool', async () => {
  const { structuredContent } = await alice.call('list_approvals');
  assert.deepEqual(structuredContent, { approvals: [] });
  assert.deepEqual(alice.person.asked, ['releases', 'releases releases:approve']);
  await alice.call('list_approvals'); // it has the scope now
  assert.equal(alice.person.asked.length, 2);
});

const result = await step('ask for the scope of a task', async () => {
  const result = await alice.start('ship_release', release);
  // The SDK 1.x asks for the scopes of the call alone, and loses the others.
  assert.equal(alice.person.asked.at(-1), version === '1' ? 'releases releases:ship' : 'releases releases:approve releases:ship');
  return result;
});

await step('another person approves', async () => {
  const { structuredContent: { approvals: [request] } } = await bob.call('list_approvals');
  assert.deepEqual([request.requested_by, request.release], ['alice', release]);
  const own = await alice.call('decide_approval', { id: request.id, approve: true });
  assert.equal(own.isError, true);
  assert.match(own.content[0].text, /another person must decide/);
  const { structuredContent } = await bob.call('decide_approval', { id: request.id, approve: true });
  assert.deepEqual(structuredContent, { approved: true, by: 'bob' });
});

await step('the result of the task', async () => {
  const { structuredContent } = await result();
  assert.deepEqual(structuredContent, { ...release, approved_by: 'bob' });
});

await step('close', async () => {
  for (const { client } of [alice, bob]) {
    await client.close();
  }
});
