// The maps of a report: everything is in the page. The scores before Compose and the weights of Compose are stored; the
// other three maps are computed from them, or stored too where they do not follow.
import {Choice} from './choice.js';
import {forgetPalette, short} from './colors.js';
import {mixed, mixing} from './compose.js';
import {LayerView, byId, kinds, numbered, stages} from './layer_view.js';

const floats = (text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), view = new DataView(bytes.buffer);
  return Float32Array.from({length: bytes.length / 4}, (_, i) => view.getFloat32(4 * i, true));
};

// A layer of the data -> its four maps (N, T, T) and the weights; masked pairs are -Infinity. A query's row is stored
// up to its own key, or whole.
export function unpack(layer, size) {
  const N = layer.heads, T = size, maps = {}, weights = new Map();
  for (const [name, {shape, data}] of Object.entries(layer.weights)) weights.set(name, {shape, data: floats(data)});
  for (const name of Object.keys(kinds)) maps[name] = new Float64Array(N * T * T).fill(-Infinity);
  for (const [name, text] of Object.entries({attn_scores: layer.scores, ...layer.maps})) {
    const values = floats(text), whole = values.length === N * T * T;
    let at = 0;
    for (let row = 0; row < N * T; row++)
      for (let j = 0; j < (whole ? T : row % T + 1); j++) maps[name][row * T + j] = values[at++];
  }
  if (!layer.maps) addOthers(maps, weights, N, T);
  return {maps, weights};
}

// The maps that follow from the scores.
function addOthers(maps, weights, N, T) {
  const compose = (stage) => {
    const [before, after] = stages[stage].map((name) => maps[name]), heads = new Float64Array(N);
    for (let i = 0; i < T; i++)
      for (let j = 0; j < T; j++) {
        if (!Number.isFinite(maps.attn_scores[i * T + j])) continue;
        for (let n = 0; n < N; n++) heads[n] = before[(n * T + i) * T + j];
        const result = mixed(heads, mixing(weights, stage, i, j, N).total);
        for (let n = 0; n < N; n++) after[(n * T + i) * T + j] = result[n];
      }
  };
  compose('pre');
  for (let row = 0; row < N * T; row++) {  // softmax over the keys
    const scores = maps.attn_scores_composed.subarray(row * T, row * T + T), max = Math.max(...scores);
    let sum = 0;
    for (const x of scores) sum += Math.exp(x - max);
    for (let j = 0; j < T; j++) maps.attn_probs[row * T + j] = Math.exp(scores[j] - max) / sum;
  }
  compose('post');
}

class Report extends LayerView {
  constructor(stored) {
    super();
    this.stored = stored;
    this.models = new Choice(byId('models'), (m) => this.openModel(Number(m)));
    this.models.set(stored.models.map((m, value) => ({value, label: m.name})), 0);
    byId('model-bar').hidden = stored.models.length < 2;
    this.openModel(0);
  }

  // Maps after the heads are mixed are those of models that mix them.
  shown() {
    return Object.entries(kinds).filter(([name]) => this.model.composed || !name.endsWith('composed'));
  }

  openModel(m) {
    const s = this.state, model = this.model = this.stored.models[m];
    s.model = m;
    s.tokens = model.tokens;
    s.size = model.tokens.length;
    s.pair = [s.size - 1, Math.max(0, s.size - 2)];
    s.layer = Math.min(s.layer, model.layers.length - 1);
    this.unpacked = new Map();
    const shown = this.shown();
    if (!shown.some(([name]) => name === s.kind)) s.kind = 'attn_probs';
    this.kind.set(shown.map(([value, {label}]) => ({value, label})), s.kind);
    this.layers.set(numbered(model.layers.length), s.layer);
    byId('pair-parts').hidden = !model.composed;
    const max = Math.max(1e-9, ...model.losses);
    byId('text').replaceChildren(...model.tokens.map((token, t) => {
      const span = document.createElement('span'), loss = t > 0 ? model.losses[t - 1] : 0;
      span.textContent = token;
      span.style.setProperty('--p', loss / max);
      span.title = t > 0 ? `token ${t}, loss ${short(loss)}` : 'token 0';
      span.addEventListener('click', () => this.choosePair([t, Math.min(this.state.pair[1], t)]));
      return span;
    }));
    this.openLayer(s.layer);
  }

  openLayer(l) {
    const s = this.state;
    s.layer = l;
    if (!this.unpacked.has(l)) this.unpacked.set(l, unpack(this.model.layers[l], s.size));
    ({maps: this.data, weights: this.weights} = this.unpacked.get(l));
    s.heads = this.model.layers[l].heads;
    s.head = Math.min(s.head, s.heads - 1);
    this.heads.set(numbered(s.heads), s.head);
    this.redraw();
  }

  describe(at) {
    return this.shown().map(([name, {label}]) => `${label} ${at(name)}`).join(', ');
  }
  writeTable(columns) {
    super.writeTable(columns);
    byId('pair-table').dataset.model = this.state.model;
    [...byId('text').children].forEach((span, t) => span.classList.toggle('at', t === this.state.pair[0]));
  }
}

const stored = JSON.parse(byId('data').textContent);
if (stored.models.length) {
  const report = window.report = new Report(stored);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    forgetPalette();
    report.redraw();
  });
}
