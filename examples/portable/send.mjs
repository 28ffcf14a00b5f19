// Gives a list of tools, which it reads from standard input, to libraries that programs send them with, and prints what each
// library sends to its provider. No request leaves the process.
import { text } from 'node:stream/consumers';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createMCPClient } from '@ai-sdk/mcp';
import { createOpenAI } from '@ai-sdk/openai';
import { tool as langchainTool } from '@langchain/core/tools';
import { ChatGoogleGenerativeAI } from '@langchain/google-genai';

const listed = JSON.parse(await text(process.stdin));

let sent;
globalThis.fetch = async (_, init) => {
  sent = JSON.parse(init.body);
  return new Response('{"error":{"message":"not sent"}}', { status: 400, headers: { 'content-type': 'application/json' } });
};

// transport answers the client of the AI SDK as a server with these tools.
const transport = {
  async start() {},
  async close() {},
  async send({ id, method, params }) {
    const results = {
      initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'shapes', version: '1' } },
      'tools/list': { tools: listed },
    };
    if (results[method]) queueMicrotask(() => this.onmessage({ jsonrpc: '2.0', id, result: results[method] }));
  },
};

const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }];
const options = { apiKey: 'none', fetch: (...args) => globalThis.fetch(...args) };
const aiSDK = (model) => (tool) => model.doGenerate({ prompt, tools: [{ type: 'function', ...tool }] });
const langchain = (model) => ({ name, description, inputSchema }) =>
  model.bindTools([langchainTool(() => '', { name, description, schema: inputSchema })]).invoke('Hello');

const toGemini = ([{ functionDeclarations: [f] }]) =>
  f.parametersJsonSchema
    ? { name: f.name, form: 'parametersJsonSchema', schema: f.parametersJsonSchema }
    : { name: f.name, form: 'parameters', schema: f.parameters };
const toAnthropic = ([tool]) => ({ name: tool.name, form: 'input_schema', schema: tool.input_schema });
const toOpenAI = ([tool]) => ({ name: tool.name, form: tool.strict ? 'strict' : 'function', schema: tool.parameters });

// Each library sends a tool, and what it has sent is read.
const libraries = {
  'AI SDK to Anthropic': [aiSDK(createAnthropic(options)('claude-sonnet-4-5')), toAnthropic],
  'AI SDK to OpenAI': [aiSDK(createOpenAI(options)('gpt-5')), toOpenAI],
  'AI SDK to Gemini': [aiSDK(createGoogleGenerativeAI(options)('gemini-2.5-flash')), toGemini],
  'LangChain to Gemini': [langchain(new ChatGoogleGenerativeAI({ model: 'gemini-2.5-flash', apiKey: 'none', maxRetries: 0 })), toGemini],
};

const client = await createMCPClient({ transport });
const tools = await client.tools();
const printed = {};
for (const [library, [send, read]] of Object.entries(libraries)) {
  printed[library] = {};
  for (const [name, { description, inputSchema }] of Object.entries(tools)) {
    sent = undefined;
    let error;
    try {
      await send({ name, description, inputSchema: await inputSchema.jsonSchema });
    } catch (thrown) {
      error = String(thrown.message ?? thrown);
    }
    printed[library][name] = sent ? read(sent.tools) : { error };
  }
}
process.stdout.write(JSON.stringify(printed));
