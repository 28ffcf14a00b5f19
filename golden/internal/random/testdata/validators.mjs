// Checks JSON with the validators of the published TypeScript SDKs, the way those SDKs set them up.
//   node validators.mjs DIRECTORY
// DIRECTORY has the packages in node_modules. Each line of the input is a request, each line of the output its answer:
//   {"schema": {...}, "values": ["JSON", ...]}  ->  {"faults": [["fault of the SDK 1.x" or "", "fault of 2.x" or ""], ...]}
//   {"pattern": "...", "subjects": [...]}       ->  {"matches": [true, ...]}
// If a schema or a pattern does not compile, the answer is {"error": "..."}.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.argv[2]}/package.json`);
const providers = [
  require('@modelcontextprotocol/sdk/validation/ajv').AjvJsonSchemaValidator,
  require('@modelcontextprotocol/client/validators/ajv').AjvJsonSchemaValidator,
];

function answer({ schema, values, pattern, subjects }) {
  if (pattern !== undefined) {
    const expression = new RegExp(pattern, 'u'); // as Ajv does
    return { matches: subjects.map((subject) => expression.test(subject)) };
  }
  const validators = providers.map((Provider) => new Provider().getValidator(schema));
  const check = (text) => validators.map((validate) => {
    const { valid, errorMessage } = validate(JSON.parse(text));
    return valid ? '' : errorMessage || 'no words';
  });
  return { faults: values.map(check) };
}

for await (const line of createInterface({ input: process.stdin })) {
  let result;
  try {
    result = answer(JSON.parse(line));
  } catch (error) {
    result = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
