// The server's routes: JSON, streams of events, and inspections as arrays.

let key = sessionStorage.getItem('braid-key') ?? '';
export function useKey(text) {
  key = text;
  sessionStorage.setItem('braid-key', text);
}

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function request(path, body, signal) {
  const headers = key ? {Authorization: `Bearer ${key}`} : {};
  const options = {headers, signal};
  if (body !== undefined) {
    options.method = 'POST';
    headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('The server does not answer. Is it still running?', 0);
  }
  if (response.ok) return response;
  const text = await response.text();
  let message = `${path} answered ${response.status}`;
  try {
    message = JSON.parse(text).error.message;
  } catch { /* not an answer of this API: the status has to do */ }
  throw new ApiError(message, response.status);
}

export const getJson = async (path) => (await request(path)).json();
export const postJson = async (path, body, signal) => (await request(path, body, signal)).json();

// The events of a streamed answer, parsed; ends at [DONE].
export async function* stream(path, body, signal) {
  const response = await request(path, {...body, stream: true}, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    held += value;
    const events = held.split('\n\n');
    held = events.pop();
    for (const event of events) {
      const data = event.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim()).join('');
      if (data === '[DONE]') return;
      if (!data) continue;
      const parsed = JSON.parse(data);
      if (parsed.error) throw new ApiError(parsed.error.message, 200);
      yield parsed;
    }
  }
}

// A safetensors file: length of the header, header, little-endian arrays.
export function readSafetensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = new Map();
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const [begin, end] = entry.data_offsets;
    tensors.set(name, {shape: entry.shape, data: new Float32Array(buffer, 8 + length + begin, (end - begin) / 4)});
  }
  return {about: JSON.parse(header.__metadata__.inspection), tensors};
}

export async function inspect(body, signal) {
  const response = await request('/v1/inspect', {...body, format: 'safetensors', dtype: 'f32'}, signal);
  return readSafetensors(await response.arrayBuffer());
}
