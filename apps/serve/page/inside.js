// The inside of the model: asks the server for one layer of one text, and keeps all charts at the same pair.
import {inspect} from './api.js';
import {Branches} from './branches.js';
import {Choice} from './choice.js';
import {legend, short, showToken} from './colors.js';
import {mixed, mixing} from './compose.js';
import {Equation} from './equation.js';
import {Flow} from './flow.js';
import {HeadMaps, Triple} from './maps.js';

const $ = (id) => document.getElementById(id);
const kinds = {
  attn_scores: {label: 'scores', title: 'before the heads are mixed'},
  attn_scores_composed: {label: 'scores, mixed', title: 'what softmax reads'},
  attn_probs: {label: 'probabilities', title: 'before the heads are mixed'},
  attn_probs_composed: {label: 'probabilities, mixed', title: 'what multiplies the values'},
};
const stages = {pre: ['attn_scores', 'attn_scores_composed'], post: ['attn_probs', 'attn_probs_composed']};
const longest = 96;  // tokens that are shown; longer texts are cut

export class Inside {
  constructor(tokenize, onError) {
    this.tokenize = tokenize;
    this.onError = onError;
    this.state = {layer: 0, layers: 0, kind: 'attn_probs_composed', stage: 'post', pair: [0, 0], head: 0, heads: 0, size: 0,
      position: 0, tokens: [], pinned: false};
    const pair = (p, fromKey) => this.choosePair(p, fromKey), head = (n) => this.chooseHead(n);
    this.layers = new Choice($('layers'), (l) => { this.state.layer = Number(l); this.load(); });
    this.kind = new Choice($('map-kind'), (kind) => { this.state.kind = kind; this.drawMaps(); });
    this.stage = new Choice($('stage'), (stage) => { this.state.stage = stage; this.drawPair(); this.drawTriple(); });
    this.heads = new Choice($('heads'), (n) => this.chooseHead(Number(n)));
    this.kind.set(Object.entries(kinds).map(([value, k]) => ({value, ...k})), this.state.kind);
    this.stage.set([{value: 'pre', label: 'scores, before softmax'}, {value: 'post', label: 'probabilities, after softmax'}],
      this.state.stage);
    this.maps = new HeadMaps($('maps'), this.state, {pair, head});
    this.triple = new Triple($('triple'), this.state, pair);
    this.flow = new Flow($('flow'));
    this.equation = new Equation($('equation'), $('cell-text'), $('matrix-legend'));
    this.branches = new Branches(this.state, {scale: () => this.load(), position: (t) => this.choosePosition(t)});
    $('hide-own').addEventListener('change', () => this.drawPair());
    $('look-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.look($('look').value);
    });
  }

  async look(text) {
    if (!text) return;
    try {
      const {tokens} = await this.tokenize(text);
      this.ids = tokens.slice(0, longest);
      if (!this.ids.length) return;
      this.cut = tokens.length > longest ? ` The first ${longest} of ${tokens.length} tokens are shown.` : '';
      this.state.position = this.ids.length - 1;
      this.state.pair = [this.ids.length - 1, Math.max(0, this.ids.length - 2)];
      await this.load();
    } catch (error) {
      this.onError(error);
    }
  }

  // Asks for the layer; an answer that comes after the next question does not count.
  async load() {
    if (!this.ids) return;
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    $('look-status').textContent = 'The model reads…';
    $('inside').setAttribute('aria-busy', 'true');
    try {
      const {about, tensors} = await inspect(
        {tokens: this.ids, layer: this.state.layer, candidates: 10, scales: this.branches.scales()}, abort.signal);
      if (this.abort !== abort) return;
      this.take(about, tensors);
      $('look-status').textContent = `${about.positions.length} tokens, layer ${about.layer} of ${about.layers}, `
        + `${about.heads} heads${about.groups > 1 ? ` in ${about.groups} groups` : ''}`
        + `${about.rank ? `, rank ${about.rank}` : ''}.${this.cut}`;
    } catch (error) {
      if (error.name !== 'AbortError') {
        $('look-status').textContent = error.message;
        this.onError(error);
      }
    } finally {
      if (this.abort === abort) $('inside').setAttribute('aria-busy', 'false');
    }
  }

  take(about, tensors) {
    const s = this.state, prefix = `layers.${about.layer}.`;
    this.maps4 = new Map(Object.keys(kinds).map((name) => [name, tensors.get(prefix + name)]));
    this.weights = new Map([...tensors].filter(([name]) => name.startsWith(`${prefix}dyn.`))
      .map(([name, tensor]) => [name.slice(prefix.length), tensor]));
    s.size = about.positions.length;
    s.tokens = about.positions.map((p) => p.text ?? String(p.id));
    s.pair = s.pair.map((x) => Math.min(x, s.size - 1));
    if (about.layers !== s.layers)
      this.layers.set(Array.from({length: about.layers}, (_, l) => ({value: l, label: String(l)})), about.layer);
    s.layers = about.layers;
    if (about.heads !== s.heads)
      this.heads.set(Array.from({length: about.heads}, (_, n) => ({value: n, label: String(n)})), s.head = Math.min(s.head, about.heads - 1));
    s.heads = about.heads;
    this.branches.offer(this.weights);
    this.branches.set(about.positions);
    this.drawMaps();
    this.drawTriple();
    this.drawPair();
  }

  value(name, n) {
    const {data} = this.maps4.get(name), scores = this.maps4.get('attn_scores').data;
    const T = this.state.size, first = n * T * T;
    return (i, j) => Number.isFinite(scores[first + i * T + j]) ? data[first + i * T + j] : -Infinity;  // masked
  }
  max(name) {
    let max = 1e-9;
    for (const x of this.maps4.get(name).data) if (Number.isFinite(x)) max = Math.max(max, Math.abs(x));
    return max;
  }

  drawMaps() {
    const {kind, heads, size} = this.state;
    if (!this.maps4) return;
    // Scores keep a scale before and after, so that both can be compared; probabilities as well.
    const max = Math.max(...(kind.startsWith('attn_scores') ? stages.pre : stages.post).map((name) => this.max(name)));
    this.maps.set(heads, size, (n) => this.value(kind, n), max);
    const signed = kind !== 'attn_probs';
    legend($('map-legend'), max, signed, kind.startsWith('attn_scores') ? 'score' : 'probability');
  }

  drawTriple() {
    if (!this.maps4) return;
    const {head, size, stage} = this.state, [before, after] = stages[stage];
    const a = this.value(before, head), b = this.value(after, head);
    let difference = 0;
    for (let i = 0; i < size; i++)
      for (let j = 0; j < size; j++) if (Number.isFinite(a(i, j))) difference = Math.max(difference, Math.abs(b(i, j) - a(i, j)));
    const max = Math.max(this.max(before), this.max(after));
    this.triple.set(size, a, b, max, difference || 1, head);
    legend($('triple-legend'), max, true, stage === 'pre' ? 'score' : 'probability');
  }

  drawPair() {
    if (!this.maps4) return;
    const {pair: [i, j], heads, stage, tokens, size} = this.state;
    const at = (name) => Float64Array.from({length: heads}, (_, n) => this.value(name, n)(i, j));
    const columns = Object.fromEntries(Object.keys(kinds).map((name) => [name, at(name)]));
    const masked = !Number.isFinite(columns.attn_scores[0]);
    const matrices = mixing(this.weights, stage, i, j, heads);
    const before = masked ? new Float64Array(heads) : columns[stages[stage][0]];
    const carried = new Float64Array(heads * heads), own = $('hide-own').checked;
    for (let m = 0; m < heads; m++)
      for (let n = 0; n < heads; n++) carried[m * heads + n] = own && m === n ? 0 : before[m] * matrices.total[m * heads + n];
    this.flow.set({before, after: mixed(before, matrices.total), carried, masked});
    this.equation.set(heads, matrices, stage);
    $('pair-text').textContent = `Query ${i} “${showToken(tokens[i])}” looks at key ${j} “${showToken(tokens[j])}”`
      + (masked ? ': masked.' : `, head ${this.state.head}: score ${short(columns.attn_scores[this.state.head])} → `
        + `${short(columns.attn_scores_composed[this.state.head])}, probability ${short(columns.attn_probs[this.state.head])} → `
        + `${short(columns.attn_probs_composed[this.state.head])}.`);
    this.writeTable(columns, i, j, size);
  }

  writeTable(columns, i, j) {
    const table = $('pair-table'), cell = (tag, text, value) => {
      const element = document.createElement(tag);
      element.textContent = text;
      if (value !== undefined) element.dataset.value = value;
      return element;
    };
    table.dataset.pair = `${i},${j}`;
    table.dataset.layer = this.state.layer;
    const head = document.createElement('tr');
    head.append(cell('th', 'head'), ...Object.values(kinds).map((k) => cell('th', k.label)));
    table.replaceChildren(head, ...Array.from({length: this.state.heads}, (_, n) => {
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
  choosePosition(t) {
    this.state.position = t;
    this.branches.draw();
    this.choosePair([t, Math.min(this.state.pair[1], t)]);
  }
  // Colors have changed.
  redraw() {
    this.drawMaps();
    this.drawTriple();
    this.drawPair();
  }
}
