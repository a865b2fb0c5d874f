// The maps of a report: everything is in the page. The scores before Compose and the weights of Compose are stored; the
// other three maps are computed from them.
import {Choice} from './choice.js';
import {forgetPalette, legend, short, showToken} from './colors.js';
import {mixed, mixing} from './compose.js';
import {Equation} from './equation.js';
import {Flow} from './flow.js';
import {HeadMaps, Triple} from './maps.js';

const byId = (id) => document.getElementById(id);
const kinds = {attn_scores: 'scores', attn_scores_composed: 'scores, mixed', attn_probs: 'probabilities',
  attn_probs_composed: 'probabilities, mixed'};
const stages = {pre: ['attn_scores', 'attn_scores_composed'], post: ['attn_probs', 'attn_probs_composed']};

const floats = (text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), view = new DataView(bytes.buffer);
  return Float32Array.from({length: bytes.length / 4}, (_, i) => view.getFloat32(4 * i, true));
};

// A layer of the data -> its four maps (N, T, T) and the weights; masked pairs are -Infinity.
function unpack(layer, size) {
  const N = layer.heads, T = size, maps = {};
  for (const name of Object.keys(kinds)) maps[name] = new Float64Array(N * T * T).fill(-Infinity);
  const triangle = floats(layer.scores), weights = new Map();
  for (const [name, {shape, data}] of Object.entries(layer.weights)) weights.set(name, {shape, data: floats(data)});
  let at = 0;
  for (let n = 0; n < N; n++)
    for (let i = 0; i < T; i++) for (let j = 0; j <= i; j++) maps.attn_scores[(n * T + i) * T + j] = triangle[at++];
  const compose = (stage) => {
    const [before, after] = stages[stage].map((name) => maps[name]), heads = new Float64Array(N);
    for (let i = 0; i < T; i++)
      for (let j = 0; j <= i; j++) {
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
  return {maps, weights};
}

class Report {
  constructor(data) {
    this.data = data;
    this.state = {model: 0, layer: 0, kind: 'attn_probs_composed', stage: 'post', pair: [0, 0], head: 0, heads: 0, size: 0,
      tokens: [], pinned: false};
    const pair = (p) => this.choosePair(p), head = (n) => this.chooseHead(n);
    this.models = new Choice(byId('models'), (m) => this.openModel(Number(m)));
    this.layers = new Choice(byId('layers'), (l) => this.openLayer(Number(l)));
    this.kind = new Choice(byId('map-kind'), (kind) => { this.state.kind = kind; this.drawMaps(); });
    this.stage = new Choice(byId('stage'), (stage) => { this.state.stage = stage; this.drawTriple(); this.drawPair(); });
    this.headChoice = new Choice(byId('heads'), (n) => this.chooseHead(Number(n)));
    this.maps = new HeadMaps(byId('maps'), this.state, {pair, head});
    this.triple = new Triple(byId('triple'), this.state, pair);
    this.flow = new Flow(byId('flow'));
    this.equation = new Equation(byId('equation'), byId('cell-text'), byId('matrix-legend'));
    this.models.set(data.models.map((m, value) => ({value, label: m.name})), 0);
    byId('model-bar').hidden = data.models.length < 2;
    this.openModel(0);
  }

  openModel(m) {
    const s = this.state, model = this.model = this.data.models[m];
    s.model = m;
    s.tokens = model.tokens;
    s.size = model.tokens.length;
    s.pair = [s.size - 1, Math.max(0, s.size - 2)];
    s.layer = Math.min(s.layer, model.layers.length - 1);
    this.unpacked = new Map();
    const shown = Object.entries(kinds).filter(([name]) => model.composed || !name.endsWith('composed'));
    if (!shown.some(([name]) => name === s.kind)) s.kind = 'attn_probs';
    this.kind.set(shown.map(([value, label]) => ({value, label})), s.kind);
    this.stage.set([{value: 'pre', label: 'scores, before softmax'}, {value: 'post', label: 'probabilities, after softmax'}], s.stage);
    this.layers.set(model.layers.map((_, value) => ({value, label: String(value)})), s.layer);
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
    ({maps: this.maps4, weights: this.weights} = this.unpacked.get(l));
    s.heads = this.model.layers[l].heads;
    s.head = Math.min(s.head, s.heads - 1);
    this.headChoice.set(Array.from({length: s.heads}, (_, n) => ({value: n, label: String(n)})), s.head);
    this.redraw();
  }

  value(name, n) {
    const data = this.maps4[name], T = this.state.size, first = n * T * T;
    return (i, j) => data[first + i * T + j];
  }
  max(name) {
    let max = 1e-9;
    for (const x of this.maps4[name]) if (Number.isFinite(x)) max = Math.max(max, Math.abs(x));
    return max;
  }
  drawMaps() {
    const {kind, heads, size} = this.state, score = kind.startsWith('attn_scores');
    const max = Math.max(...stages[score ? 'pre' : 'post'].map((name) => this.max(name)));
    this.maps.set(heads, size, (n) => this.masked(kind, n), max);
    legend(byId('map-legend'), max, kind !== 'attn_probs', score ? 'score' : 'probability');
  }
  // Masked probabilities are 0 in the data and hatched in the chart.
  masked(name, n) {
    const value = this.value(name, n), score = this.value('attn_scores', n);
    return (i, j) => Number.isFinite(score(i, j)) ? value(i, j) : -Infinity;
  }
  drawTriple() {
    const {head, size, stage} = this.state, [a, b] = stages[stage].map((name) => this.masked(name, head));
    let difference = 0;
    for (let i = 0; i < size; i++)
      for (let j = 0; j <= i; j++) if (Number.isFinite(a(i, j))) difference = Math.max(difference, Math.abs(b(i, j) - a(i, j)));
    const max = Math.max(...stages[stage].map((name) => this.max(name)));
    this.triple.set(size, a, b, max, difference || 1, head);
    legend(byId('triple-legend'), max, true, stage === 'pre' ? 'score' : 'probability');
  }
  drawPair() {
    const {pair: [i, j], heads, stage, tokens, head} = this.state;
    const columns = Object.fromEntries(Object.keys(kinds).map((name) =>
      [name, Float64Array.from({length: heads}, (_, n) => this.masked(name, n)(i, j))]));
    const masked = !Number.isFinite(columns.attn_scores[0]), matrices = mixing(this.weights, stage, i, j, heads);
    const before = masked ? new Float64Array(heads) : columns[stages[stage][0]], carried = new Float64Array(heads * heads);
    for (let m = 0; m < heads; m++)
      for (let n = 0; n < heads; n++) carried[m * heads + n] = before[m] * matrices.total[m * heads + n];
    this.flow.set({before, after: mixed(before, matrices.total), carried, masked});
    this.equation.set(heads, matrices, stage);
    byId('pair-text').textContent = `Query ${i} “${showToken(tokens[i])}” looks at key ${j} “${showToken(tokens[j])}”`
      + (masked ? ': masked.' : `, head ${head}: ` + Object.entries(kinds).filter(([name]) => this.model.composed || !name.endsWith('composed'))
        .map(([name, label]) => `${label} ${short(columns[name][head])}`).join(', ') + '.');
    [...byId('text').children].forEach((span, t) => span.classList.toggle('at', t === i));
    this.writeTable(columns, i, j);
  }
  writeTable(columns, i, j) {
    const table = byId('pair-table'), cell = (tag, text, value) => {
      const element = document.createElement(tag);
      element.textContent = text;
      if (value !== undefined) element.dataset.value = value;
      return element;
    };
    Object.assign(table.dataset, {pair: `${i},${j}`, layer: this.state.layer, model: this.state.model});
    const head = document.createElement('tr');
    head.append(cell('th', 'head'), ...Object.values(kinds).map((label) => cell('th', label)));
    table.replaceChildren(head, ...Array.from({length: this.state.heads}, (_, n) => {
      const row = document.createElement('tr');
      row.append(cell('th', n), ...Object.keys(kinds).map((name) => cell('td', short(columns[name][n]), columns[name][n])));
      return row;
    }));
  }
  choosePair(pair) {
    this.state.pair = pair;
    this.maps.draw();
    this.triple.draw();
    this.drawPair();
  }
  chooseHead(n) {
    this.state.head = n;
    this.headChoice.mark(n);
    this.maps.draw();
    this.drawTriple();
    this.drawPair();
  }
  redraw() {
    this.drawMaps();
    this.drawTriple();
    this.drawPair();
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
