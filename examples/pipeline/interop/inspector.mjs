// Takes the picture of a running task in the MCP Inspector, the one that the README shows:
//   node examples/pipeline/interop/inspector.mjs docs/images/inspector.png
// The era legacy, as a second argument, is revision 2025-11-25; the default is 2026-07-28.
// It starts the example server and the Inspector, and drives the Inspector's page in Chromium over
// the DevTools protocol. It needs Go, Chromium, npx and Node.js 22.19 or newer. `make screenshot` runs it.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [picture, era = 'modern'] = process.argv.slice(2);
if (!picture) {
  console.error('usage: node inspector.mjs PICTURE.png [modern|legacy]');
  process.exit(2);
}
const inspector = '@modelcontextprotocol/inspector@2.12.0';
const chromium = process.env.CHROMIUM ?? 'chromium';
const size = { width: 1500, height: 700 };
const limit = 60_000;

const pipeline = join(dirname(fileURLToPath(import.meta.url)), '..');
const scratch = await mkdtemp(join(tmpdir(), 'inspector-'));
const children = [];
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    children.forEach(kill);
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
    process.exit(1);
  });
}
try {
  await run('go', ['build', '-o', join(scratch, 'server'), pipeline]);
  const server = await waitFor(start(join(scratch, 'server'), ['-http', '127.0.0.1:0']), /^serving (\S+)/m);
  const page = await waitFor(
    start('npx', ['-y', inspector, '--web', '--protocol-era', era, '--transport', 'http', '--server-url', server],
      { MCP_AUTO_OPEN_ENABLED: 'false', HOME: scratch }),
    /(http:\/\/\S+MCP_INSPECTOR_API_TOKEN=\w+)/);
  const devtools = await waitFor(
    start(chromium, ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--remote-debugging-port=0',
      `--user-data-dir=${join(scratch, 'profile')}`, 'about:blank']),
    /DevTools listening on (ws:\S+)/);
  const tab = await connect(devtools);
  await tab.send('Emulation.setDeviceMetricsOverride', { ...size, deviceScaleFactor: 1, mobile: false });
  await tab.send('Page.navigate', { url: page });

  await click(tab, 'Connect or disconnect');
  await click(tab, 'Tools');
  await click(tab, 'run_pipeline');
  await fill(tab, 'repository', 'shop');
  await fill(tab, 'branch', 'slow'); // a minute for each stage
  await click(tab, 'Tasks');
  await click(tab, 'Execute Tool');
  await until(tab, `document.body.innerText.includes('checkout (0/4)')`);
  // The toast with the same text covers a part of the page.
  await tab.evaluate(`document.querySelectorAll('[class*=Notification-root]').forEach((toast) => toast.remove())`);
  await until(tab, `!document.querySelector('[class*=Notification-root]')`);
  const { data } = await tab.send('Page.captureScreenshot', { format: 'png' });
  await writeFile(picture, Buffer.from(data, 'base64'));
  console.log(await tab.evaluate('document.body.innerText'));
} finally {
  await Promise.all(children.map(kill));
  await rm(scratch, { recursive: true, force: true, maxRetries: 10 });
}

function start(command, args, env = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, detached: true });
  children.push(child);
  return child;
}

// kill ends a child and the processes that it has started: they are one process group. It returns when the child has
// exited.
function kill(child) {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const exited = new Promise((resolve) => child.on('exit', resolve));
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    return; // it is gone
  }
  return exited;
}

function run(command, args) {
  return new Promise((resolve, reject) => {
    spawn(command, args, { stdio: 'inherit' }).on('error', reject)
      .on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${command} exited with ${code}`))));
  });
}

// waitFor returns what a pattern finds in what a child prints.
function waitFor(child, pattern) {
  return new Promise((resolve, reject) => {
    let text = '';
    const read = (data) => {
      text += data;
      const match = pattern.exec(text);
      if (match) {
        resolve(match[1]);
      }
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`${child.spawnfile} exited with ${code}: ${text}`)));
  });
}

// connect opens the DevTools connection to the browser's first tab.
async function connect(devtools) {
  const { host } = new URL(devtools);
  const tabs = await (await fetch(`http://${host}/json`)).json();
  const socket = new WebSocket(tabs.find((tab) => tab.type === 'page').webSocketDebuggerUrl);
  await new Promise((resolve) => socket.addEventListener('open', resolve));
  let last = 0;
  const waiting = new Map();
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(data);
    waiting.get(id)?.(result);
  });
  const send = (method, params) => new Promise((resolve) => {
    waiting.set(++last, resolve);
    socket.send(JSON.stringify({ id: last, method, params }));
  });
  const evaluate = async (expression) => (await send('Runtime.evaluate', { expression, returnByValue: true })).result.value;
  return { send, evaluate };
}

// until waits for an expression to hold in the page.
async function until(tab, expression) {
  for (const begin = Date.now(); Date.now() - begin < limit;) {
    if (await tab.evaluate(expression)) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the page never got there: ${expression}\n${await tab.evaluate('document.body.innerText')}`);
}

// click clicks the control with a label or a text, once it is there.
function click(tab, name) {
  return until(tab, `(() => {
    const named = (e) => (e.getAttribute('aria-label') ?? '').startsWith(${JSON.stringify(name)}) || e.innerText.trim() === ${JSON.stringify(name)};
    const control = [...document.querySelectorAll('button, label, input')].find((e) => e.offsetParent && !e.disabled && named(e));
    control?.click();
    return Boolean(control);
  })()`);
}

// fill types into the field with a label, as React wants it.
function fill(tab, name, value) {
  return until(tab, `(() => {
    const label = [...document.querySelectorAll('label')].find((e) => e.innerText.trim().startsWith(${JSON.stringify(name)}));
    const field = document.getElementById(label?.htmlFor ?? '');
    if (!field) {
      return false;
    }
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, ${JSON.stringify(value)});
    field.dispatchEvent(new Event('input', { bubbles: true }));
    return true;
  })()`);
}
