// Connects the published TypeScript SDK 1.x to a server, at a URL or as a command.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

// connect makes a client that answers questions with elicit, and asks a model with sample if there is one.
export async function connect(target, args, { elicit, sample, onError, fetch }) {
  const client = new Client({ name: 'interop', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} }, ...(sample && { sampling: {} }) } });
  client.onerror = onError;
  client.setRequestHandler(ElicitRequestSchema, (request, extra) => elicit(request.params, extra));
  if (sample) {
    client.setRequestHandler(CreateMessageRequestSchema, (request) => sample(request.params));
  }
  const transport = /^https?:/.test(target)
    ? new StreamableHTTPClientTransport(new URL(target), { fetch })
    : new StdioClientTransport({ command: target, args });
  await client.connect(transport);
  return { client, transport };
}
