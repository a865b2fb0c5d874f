// Sliders that scale the terms of Compose, and the distribution of the next token before and after.
import {Choice} from './choice.js';
import {percent, short, showToken} from './colors.js';

const $ = (id) => document.getElementById(id);
const terms = [['static', 'base', 'static matrix'], ['query', 'query', 'query-wise'], ['key', 'key', 'key-wise'],
  ['query_gate', 'query_gate', 'query gate'], ['key_gate', 'key_gate', 'key gate']];
const stages = [['pre', 'before softmax'], ['post', 'after softmax']];
const rows = 10;  // of the distribution

export class Branches {
  // events: {scale(), position(t)}
  constructor(state, events) {
    this.state = state;
    this.events = events;
    this.where = new Choice($('where'), () => this.scaled() && events.scale());
    this.where.set([{value: 'layer', label: 'this layer'}, {value: 'all', label: 'all layers'}], 'all');
    const head = document.createElement('tr');
    head.append(document.createElement('td'), ...stages.map(([, label]) => {
      const th = document.createElement('th');
      th.scope = 'col';
      th.textContent = label;
      return th;
    }));
    $('sliders').append(head, ...terms.map((term) => this.row(...term)));
    $('reset').addEventListener('click', () => {
      for (const input of this.inputs()) {
        input.value = 1;
        this.tell(input);
      }
      events.scale();
    });
    $('next').replaceChildren(...Array.from({length: rows}, () => {
      const item = document.createElement('li');
      for (const name of ['word', 'bars', 'value']) {
        const span = document.createElement('span');
        span.className = name;
        item.append(span);
      }
      for (const name of ['plain', 'scaled']) {
        const bar = document.createElement('span');
        bar.className = name;
        item.children[1].append(bar);
      }
      return item;
    }));
    $('strip').addEventListener('keydown', (event) => {
      const last = state.tokens.length - 1;
      const to = {ArrowRight: state.position + 1, ArrowLeft: state.position - 1, Home: 0, End: last}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      events.position(Math.max(0, Math.min(last, to)));
    });
  }

  row(name, member, label) {
    const tr = document.createElement('tr'), th = document.createElement('th');
    tr.dataset.term = name;
    th.scope = 'row';
    th.textContent = label;
    tr.append(th, ...stages.map(([stage, when]) => {
      const td = document.createElement('td'), input = document.createElement('input'), output = document.createElement('output');
      Object.assign(input, {type: 'range', min: 0, max: 1, step: 0.05, value: 1, id: `${stage}-${name}`});
      input.setAttribute('aria-label', `${label}, ${when}`);
      output.htmlFor = input.id;
      input.addEventListener('input', () => {
        this.tell(input);
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.events.scale(), 120);
      });
      td.append(input, output);
      this.tell(input);
      return td;
    }));
    return tr;
  }
  tell(input) {
    input.parentElement.querySelector('output').textContent = Number(input.value).toFixed(2);
    input.parentElement.classList.toggle('changed', Number(input.value) !== 1);
  }
  inputs() { return [...$('sliders').querySelectorAll('input')]; }
  scaled() { return this.inputs().some((input) => Number(input.value) !== 1); }

  // For /v1/inspect.
  scales() {
    if (!this.scaled()) return [];
    const factors = {};
    for (const [stage] of stages)
      factors[stage] = Object.fromEntries(terms.map(([name]) => [name, Number($(`${stage}-${name}`).value)]));
    return [this.where.value === 'all' ? factors : {layer: this.state.layer, ...factors}];
  }

  // Terms that the layer does not have cannot be scaled. Only an unscaled layer shows all its terms.
  offer(weights) {
    if (this.scaled()) return;
    const have = {static: '.w', query: '_q.w1', key: '_k.w1', query_gate: '_q.dd', key_gate: '_k.dd'};
    const absent = [];
    for (const [stage, when] of stages)
      for (const [name, , label] of terms) {
        const exists = weights.has(`dyn.${stage}${have[name]}`), input = $(`${stage}-${name}`);
        input.disabled = !exists;
        if (!exists) absent.push(`${label} (${when})`);
      }
    $('absent').hidden = absent.length === 0;
    $('absent').textContent = absent.length === 10 ? 'This model has plain attention: there is nothing to scale.'
      : `This model does not have: ${absent.join(', ')}.`;
  }

  set(positions) {
    this.positions = positions;
    const max = Math.max(1e-6, ...positions.map((p) => p.kl ?? 0));
    const strip = $('strip');
    while (strip.children.length > positions.length) strip.lastChild.remove();
    while (strip.children.length < positions.length) {
      const option = document.createElement('span'), t = strip.children.length;
      option.role = 'option';
      option.className = 'place';
      option.id = `place-${t}`;
      option.append(document.createElement('span'), document.createElement('span'));
      option.lastChild.className = 'kl';
      option.addEventListener('click', () => this.events.position(t));
      strip.append(option);
    }
    positions.forEach((p, t) => {
      const option = strip.children[t];
      option.firstChild.textContent = showToken(p.text ?? String(p.id));
      option.lastChild.style.setProperty('--p', (p.kl ?? 0) / max);
      option.title = `${p.kl === undefined ? '' : `KL ${short(p.kl)} nats, `}entropy of the next token ${short(p.plain.entropy)} nats`;
    });
    this.draw();
  }

  draw() {
    if (!this.positions) return;
    const at = Math.min(this.state.position, this.positions.length - 1), p = this.positions[at];
    [...$('strip').children].forEach((option, t) => option.setAttribute('aria-selected', String(t === at)));
    $('strip').setAttribute('aria-activedescendant', `place-${at}`);
    const place = $('strip').children[at];
    $('strip').scrollLeft = Math.min(place.offsetLeft - $('strip').offsetLeft - 8, Math.max($('strip').scrollLeft,
      place.offsetLeft - $('strip').offsetLeft + place.offsetWidth - $('strip').clientWidth + 8));
    const scaled = p.scaled !== undefined;
    const entropies = scaled ? `entropy ${short(p.plain.entropy)} → ${short(p.scaled.entropy)} nats, KL ${short(p.kl)} nats`
      : `entropy ${short(p.plain.entropy)} nats`;
    $('next-text').textContent = `After “${showToken(p.text ?? String(p.id))}” (token ${at}): ${entropies}.`;
    $('next-text').dataset.kl = p.kl ?? 0;
    const shown = p.candidates.map((c) => ({...c, before: Math.exp(c.plain ?? -Infinity),
      after: Math.exp((scaled ? c.scaled : c.plain) ?? -Infinity)}))
      .sort((a, b) => Math.max(b.before, b.after) - Math.max(a.before, a.after)).slice(0, rows);
    [...$('next').children].forEach((item, r) => {
      const c = shown[r];
      item.classList.toggle('empty', !c);
      if (!c) return;
      const [word, bars, value] = item.children;
      word.textContent = showToken(c.text ?? String(c.id));
      bars.firstChild.style.setProperty('--p', c.before);
      bars.lastChild.style.setProperty('--p', c.after);
      value.textContent = scaled ? `${percent(c.before)} → ${percent(c.after)}` : percent(c.before);
      item.dataset.id = c.id;
      item.dataset.before = c.before;
      item.dataset.after = c.after;
    });
  }
}
