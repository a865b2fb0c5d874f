// How the model writes: the fields beside the text, kept over a reload with the text itself.

const $ = (id) => document.getElementById(id);
const fields = ['system', 'temperature', 'count', 'top-p', 'seed', 'stops'];

export class Settings {
  constructor(onChange) {
    const show = () => { $('temperature-value').textContent = Number($('temperature').value).toFixed(1); };
    $('temperature').addEventListener('input', show);
    for (const id of fields) $(id).addEventListener('change', onChange);
    this.show = show;
  }

  get system() { return $('system').value.trim(); }
  get count() { return Math.max(1, Math.min(1000, Number($('count').value) || 48)); }

  // Fields of a request; those that are empty are not there.
  request() {
    const body = {temperature: Number($('temperature').value)};
    const topP = $('top-p').value, seed = $('seed').value;
    if (topP !== '') body.top_p = Math.max(0, Math.min(1, Number(topP)));
    if (seed !== '') body.seed = Math.trunc(Number(seed));
    const stops = $('stops').value.split('\n').map(unescaped).filter((text) => text);
    if (stops.length) body.stop = stops.slice(0, 16);
    return body;
  }

  save() { return Object.fromEntries(fields.map((id) => [id, $(id).value])); }
  load(values) {
    for (const id of fields) if (typeof values?.[id] === 'string') $(id).value = values[id];
    this.show();
  }
}

// A line end is written \n, because a line is a stop string.
const unescaped = (text) => text.replace(/\\(n|t|\\)/g, (_, c) => ({n: '\n', t: '\t', '\\': '\\'})[c]);
