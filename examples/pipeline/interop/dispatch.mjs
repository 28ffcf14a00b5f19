// Sends requests of 2026-07-28 beside a Client of @modelcontextprotocol/client, which refuses the
// wire shapes of tasks. The package ext-tasks frames them and leaves the sending to its host.

// The parameter that the header Mcp-Name repeats.
const named = { 'tools/call': 'name', 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' };

// rawDispatch sends to a URL. own returns headers of the host's, such as a token.
export function rawDispatch(url, own = () => ({})) {
  let last = 0;
  return async ({ method, params }, { signal, context } = {}) => {
    const id = ++last;
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        ...context?.headers,
        ...own(),
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': params._meta['io.modelcontextprotocol/protocolVersion'],
        'Mcp-Method': method,
        'Mcp-Name': params[named[method]],
      },
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
      signal,
    });
    const reply = messages(response.headers.get('content-type'), await response.text()).find((message) => message.id === id);
    if (!reply) {
      throw new Error(`${method}: HTTP ${response.status} without an answer`);
    }
    return reply.error ? { kind: 'error', error: reply.error } : { kind: 'result', result: reply.result };
  };
}

// messages reads a body: one message as JSON, or a stream of events with one each.
function messages(type, body) {
  if (type?.startsWith('application/json')) {
    return [JSON.parse(body)];
  }
  return body.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice('data: '.length)));
}
