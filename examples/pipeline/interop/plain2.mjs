// Calls tools that ask with the published TypeScript client 2.x, as programs without tasks do, in either
// revision. In 2026-07-28 the client repeats the call with the answer by itself:
//   node plain2.mjs http://127.0.0.1:8080/mcp 2026-07-28
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { stageFailed, step } from './step.mjs';

const [url, revision] = process.argv.slice(2);
if (!url || !['2025-11-25', '2026-07-28'].includes(revision)) {
  console.error('usage: node plain2.mjs URL 2025-11-25|2026-07-28');
  process.exit(2);
}
const asked = [];
let answer;
const client = new Client({ name: 'plain', version: '2.0.0' }, {
  capabilities: { elicitation: { form: {} } },
  versionNegotiation: revision === '2026-07-28' ? { mode: { pin: revision } } : { mode: 'legacy' },
});
client.setRequestHandler('elicitation/create', (request) => {
  asked.push(request.params.message);
  return answer;
});

await step('connect', async () => {
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  assert.equal(client.getNegotiatedProtocolVersion(), revision);
});

await step('answer the question of a plain call', async () => {
  answer = { action: 'accept', content: { approve: true } };
  assert.deepEqual((await deploy('api')).structuredContent, { version: '1.4.2' });
});

await step('refuse the question of a plain call', async () => {
  answer = { action: 'decline' };
  const { isError, content } = await deploy('billing');
  assert.equal(isError, true);
  assert.match(content[0].text, /billing was not shipped/);
});

await step('the code of a typed error', async () => {
  const { isError, _meta } = await client.callTool({ name: 'run_pipeline', arguments: { repository: 'shop', branch: 'broken' } });
  assert.equal(isError, true);
  assert.deepEqual(_meta['io.github.mcptaskgen/error'], stageFailed);
});

await step('end the session', () => client.close());

// deploy calls a tool that asks one question, which this client sees once.
async function deploy(service) {
  asked.length = 0;
  const result = await client.callTool({ name: 'deploy_service', arguments: { service, environment: 'production' } });
  assert.deepEqual(asked, [`Ship ${service} to production?`]);
  return result;
}
