// Connects the published TypeScript client 2.x to a server, at a URL or as a command, with its package for tasks.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createApplicationInputHandler, createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import { rawDispatch } from './dispatch.mjs';

const clientInfo = { name: 'interop', version: '2.0.0' };

// connect makes a client and its session of tasks, which answers questions with elicit, and asks a model with sample. Over
// standard input and output it speaks 2025-11-25 only.
export async function connect(target, args, revision, { elicit, sample, onError, fetch }) {
  const modern = revision === '2026-07-28';
  const capabilities = { elicitation: { form: {} }, ...(sample && { sampling: {} }) };
  const client = new Client(clientInfo, {
    capabilities,
    versionNegotiation: modern ? { mode: { pin: revision } } : { mode: 'legacy' },
  });
  client.onerror = onError;
  const transport = /^https?:/.test(target)
    ? new StreamableHTTPClientTransport(new URL(target), { fetch })
    : new StdioClientTransport({ command: target, args });
  await client.connect(transport);
  const session = createTaskSessionFromClient(client, {
    endpointId: 'interop',
    onError,
    onInputRequest: createApplicationInputHandler({
      elicitation: (request, context) => elicit(request.params, context),
      sampling: (request) => (sample ?? refuse)(request.params),
      roots: refuse,
    }),
    // The client does not know the wire shapes of tasks in 2026-07-28: they go beside it.
    ...(modern && {
      rawDispatch: rawDispatch(target),
      v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities: capabilities },
    }),
  });
  return { client, transport, session };
}

function refuse() {
  throw new Error('nothing of this kind was to be asked');
}
