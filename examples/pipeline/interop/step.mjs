// What both clients share: steps that pass by name, and none that hangs.

// How long one step may take by default, in milliseconds.
const most = 15_000;

// Every step that passes prints one line; the first that does not ends the program.
export async function step(name, work, limit = most) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${limit} ms`)), limit);
  });
  const begin = performance.now();
  try {
    const result = await Promise.race([work(), late]);
    console.log(`pass: ${name}`);
    console.log(`      ${Math.round(performance.now() - begin)} ms`);
    return result;
  } catch (error) {
    console.error(`fail: ${name}:`, error);
    process.exit(1);
  } finally {
    clearTimeout(timer);
  }
}

// A fetch that notes on which stream each question came: on that of a method, or
// on the session's own, which is a GET. Without streams of its own, the session
// has no GET; not every client can hold one open.
export function watchedFetch(questions, { standalone = true } = {}) {
  return async (url, init = {}) => {
    const method = init.method ?? 'GET';
    if (method === 'GET' && !standalone) {
      return new Response(null, { status: 405 });
    }
    const response = await fetch(url, init);
    if (response.ok && response.headers.get('content-type')?.startsWith('text/event-stream')) {
      const via = method === 'GET' ? 'GET' : JSON.parse(init.body).method;
      void note(response.clone(), via, questions);
    }
    return response;
  };
}

async function note(response, via, questions) {
  try {
    let rest = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      for (const line of lines.filter((line) => line.startsWith('data: {'))) {
        const message = JSON.parse(line.slice('data: '.length));
        if (message.method === 'elicitation/create') {
          questions.push({ via, message: message.params.message });
        }
      }
    }
  } catch {
    // The client has left the stream.
  }
}

// What the typed error of the branch "broken" has for programs.
export const stageFailed = { code: 'stage_failed', data: { stage: 'build', log: 'main.go:12:3: undefined: frobnicate' } };
