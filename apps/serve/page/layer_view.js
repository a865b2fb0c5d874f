// A layer of a model in charts: the maps of all heads, one head before and after its heads are mixed, and one pair. All
// charts stay at the same pair. The classes that extend it say where the numbers come from.
import {Choice} from './choice.js';
import {legend, short, showToken} from './colors.js';
import {mixed, mixing} from './compose.js';
import {Equation} from './equation.js';
import {Flow} from './flow.js';
import {HeadMaps, Triple} from './maps.js';

export const byId = (id) => document.getElementById(id);
export const kinds = {
  attn_scores: {label: 'scores', title: 'before the heads are mixed'},
  attn_scores_composed: {label: 'scores, mixed', title: 'what softmax reads'},
  attn_probs: {label: 'probabilities', title: 'before the heads are mixed'},
  attn_probs_composed: {label: 'weights, mixed', title: 'what multiplies the values'},
};
export const stages = {pre: ['attn_scores', 'attn_scores_composed'], post: ['attn_probs', 'attn_probs_composed']};
const mixedWeight = 'weight, which may leave 0 to 1';
// A few pairs, often of the first token, would make all others pale: stronger ones keep the color of this quantile.
const quantile = 0.995, clipped = `; clipped at the ${100 * quantile} % quantile of sizes`;
export const numbered = (count, first = 0) =>
  Array.from({length: count}, (_, value) => ({value, label: String(value + first)}));

export class LayerView {
  // this.data: by kind (N, T, T) values; this.weights: of Compose, by name; openLayer(l) shows another layer.
  constructor() {
    this.state = {layer: 0, kind: 'attn_probs_composed', stage: 'post', pair: [0, 0], head: 0, heads: 0, size: 0, tokens: [],
      pinned: false};
    const pair = (p) => this.choosePair(p), head = (n) => this.chooseHead(n);
    this.layers = new Choice(byId('layers'), (l) => this.openLayer(Number(l)));
    this.kind = new Choice(byId('map-kind'), (kind) => { this.state.kind = kind; this.drawMaps(); });
    this.stage = new Choice(byId('stage'), (stage) => { this.state.stage = stage; this.drawTriple(); this.drawPair(); });
    this.heads = new Choice(byId('heads'), (n) => this.chooseHead(Number(n)));
    this.stage.set([{value: 'pre', label: 'scores, before softmax'}, {value: 'post', label: 'weights, after softmax'}],
      this.state.stage);
    this.maps = new HeadMaps(byId('maps'), this.state, {pair, head});
    this.triple = new Triple(byId('triple'), this.state, pair);
    this.flow = new Flow(byId('flow'));
    this.equation = new Equation(byId('equation'), byId('cell-text'), byId('matrix-legend'));
  }

  // Masked pairs are -Infinity, which is hatched; their probabilities are 0 in the data.
  value(name, n) {
    const {[name]: values, attn_scores: scores} = this.data, T = this.state.size, first = n * T * T;
    return (i, j) => Number.isFinite(scores[first + i * T + j]) ? values[first + i * T + j] : -Infinity;
  }
  // The value of the darkest color: the quantile of the sizes of both maps of a stage, once for a layer's data.
  max(stage) {
    if (this.scaled !== this.data) this.scaled = this.data, this.scales = {};
    return this.scales[stage] ??= this.scaleOf(stage);
  }
  scaleOf(stage) {
    const scores = this.data.attn_scores, sizes = Float64Array.from(stages[stage].flatMap((name) =>
      Array.from(this.data[name].filter((x, at) => Number.isFinite(x) && Number.isFinite(scores[at])), Math.abs))).sort();
    return Math.max(1e-9, sizes[Math.ceil(quantile * sizes.length - 1e-9) - 1] || sizes.at(-1) || 0);
  }

  drawMaps() {
    if (!this.data) return;
    // Scores keep a scale before and after, so that both can be compared; probabilities and weights as well.
    const {kind, heads, size} = this.state, score = kind.startsWith('attn_scores'), max = this.max(score ? 'pre' : 'post');
    this.maps.set(heads, size, (n) => this.value(kind, n), max);
    legend(byId('map-legend'), max, kind !== 'attn_probs',
      (score ? 'score' : kind === 'attn_probs' ? 'probability' : mixedWeight) + clipped);
  }

  drawTriple() {
    if (!this.data) return;
    const {head, size, stage} = this.state, [a, b] = stages[stage].map((name) => this.value(name, head)), max = this.max(stage);
    let difference = 0;
    for (let i = 0; i < size; i++)
      for (let j = 0; j < size; j++) if (Number.isFinite(a(i, j))) difference = Math.max(difference, Math.abs(b(i, j) - a(i, j)));
    this.triple.set(size, a, b, max, difference || 1, head);
    legend(byId('triple-legend'), max, true, (stage === 'pre' ? 'score' : mixedWeight) + clipped);
  }

  drawPair() {
    if (!this.data) return;
    const {pair: [i, j], heads, stage, tokens, head} = this.state;
    const columns = Object.fromEntries(Object.keys(kinds).map((name) =>
      [name, Float64Array.from({length: heads}, (_, n) => this.value(name, n)(i, j))]));
    const masked = !Number.isFinite(columns.attn_scores[0]), matrices = mixing(this.weights, stage, i, j, heads);
    const before = masked ? new Float64Array(heads) : columns[stages[stage][0]];
    const carried = new Float64Array(heads * heads), hideOwn = byId('hide-own')?.checked;
    for (let m = 0; m < heads; m++)
      for (let n = 0; n < heads; n++)
        carried[m * heads + n] = hideOwn && m === n ? 0 : before[m] * matrices.total[m * heads + n];
    this.flow.set({before, after: mixed(before, matrices.total), carried, masked});
    this.equation.set(heads, matrices, stage);
    byId('pair-text').textContent = `Query ${i} “${showToken(tokens[i])}” looks at key ${j} “${showToken(tokens[j])}”`
      + (masked ? ': masked.' : `, head ${head}: ${this.describe((name) => short(columns[name][head]))}.`);
    this.writeTable(columns);
  }

  writeTable(columns) {
    const {pair, layer, heads} = this.state, table = byId('pair-table'), cell = (tag, text, value) => {
      const element = document.createElement(tag);
      element.textContent = text;
      if (value !== undefined) element.dataset.value = value;
      return element;
    };
    Object.assign(table.dataset, {pair: pair.join(), layer});
    const head = document.createElement('tr');
    head.append(cell('th', 'head'), ...Object.values(kinds).map((k) => cell('th', k.label)));
    table.replaceChildren(head, ...Array.from({length: heads}, (_, n) => {
      const row = document.createElement('tr');
      row.append(cell('th', n), ...Object.keys(kinds).map((name) => cell('td', short(columns[name][n]), columns[name][n])));
      return row;
    }));
  }

  choosePair(pair) {
    if (pair[0] === this.state.pair[0] && pair[1] === this.state.pair[1]) return;
    this.state.pair = pair;
    this.maps.draw();
    this.triple.draw();
    this.drawPair();
  }
  chooseHead(n) {
    this.state.head = n;
    this.heads.mark(n);
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
