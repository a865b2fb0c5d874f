// The inside of the model: asks the server for one layer of one text.
import {inspect} from './api.js';
import {Branches} from './branches.js';
import {LayerView, byId, kinds, numbered} from './layer_view.js';

const longest = 96;  // tokens that are shown; longer texts are cut

export class Inside extends LayerView {
  constructor(tokenize, onError) {
    super();
    this.tokenize = tokenize;
    this.onError = onError;
    Object.assign(this.state, {layers: 0, position: 0});
    this.kind.set(Object.entries(kinds).map(([value, k]) => ({value, ...k})), this.state.kind);
    this.branches = new Branches(this.state, {scale: () => this.load(), position: (t) => this.choosePosition(t)});
    byId('hide-own').addEventListener('change', () => this.drawPair());
    byId('look-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.look(byId('look').value);
    });
  }

  openLayer(l) {
    this.state.layer = l;
    this.load();
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
    byId('look-status').textContent = 'The model reads…';
    byId('inside').setAttribute('aria-busy', 'true');
    try {
      const {about, tensors} = await inspect(
        {tokens: this.ids, layer: this.state.layer, candidates: 10, scales: this.branches.scales()}, abort.signal);
      if (this.abort !== abort) return;
      this.take(about, tensors);
      byId('look-status').textContent = `${about.positions.length} tokens, layer ${about.layer + 1} of ${about.layers} (layers.${about.layer} of braid dump), `
        + `${about.heads} heads${about.groups > 1 ? ` in ${about.groups} groups` : ''}`
        + `${about.rank ? `, rank ${about.rank}` : ''}.${this.cut}`;
    } catch (error) {
      if (error.name !== 'AbortError') {
        byId('look-status').textContent = error.message;
        this.onError(error);
      }
    } finally {
      if (this.abort === abort) byId('inside').setAttribute('aria-busy', 'false');
    }
  }

  take(about, tensors) {
    const s = this.state, prefix = `layers.${about.layer}.`;
    this.data = Object.fromEntries(Object.keys(kinds).map((name) => [name, tensors.get(prefix + name).data]));
    this.weights = new Map([...tensors].filter(([name]) => name.startsWith(`${prefix}dyn.`))
      .map(([name, tensor]) => [name.slice(prefix.length), tensor]));
    s.size = about.positions.length;
    s.tokens = about.positions.map((p) => p.text ?? String(p.id));
    s.pair = s.pair.map((x) => Math.min(x, s.size - 1));
    if (about.layers !== s.layers) this.layers.set(numbered(about.layers, 1), about.layer);
    s.layers = about.layers;
    if (about.heads !== s.heads) this.heads.set(numbered(about.heads), s.head = Math.min(s.head, about.heads - 1));
    s.heads = about.heads;
    this.branches.offer(this.weights);
    this.branches.set(about.positions);
    this.redraw();
  }

  describe(at) {
    return `score ${at('attn_scores')} → ${at('attn_scores_composed')}, `
      + `probability ${at('attn_probs')} → weight ${at('attn_probs_composed')}`;
  }

  choosePosition(t) {
    this.state.position = t;
    this.branches.draw();
    this.choosePair([t, Math.min(this.state.pair[1], t)]);
  }
}
