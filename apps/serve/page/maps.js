// Attention maps: a square for every head, with one pair (query, key) marked in all of them, and one head large.
import {hatch, image, palette, prepare, short, showToken} from './colors.js';

const edge = 3;  // around a map, for the marks

// One map on a canvas. rows x columns values of `value(i, j)`; cells that are not finite are hatched.
class Map2d {
  constructor(label) {
    this.figure = document.createElement('figure');
    this.canvas = document.createElement('canvas');
    this.canvas.role = 'img';
    this.caption = document.createElement('figcaption');
    this.figure.append(this.canvas, this.caption);
    this.name(label);
  }
  name(label) {
    this.caption.textContent = label;
    this.canvas.setAttribute('aria-label', label);
  }
  set(size, value, max) {
    this.size = size;
    this.image = image(size, size, value, max);
  }
  // pair: [i, j]; tokens: labels of the axes, where there is room
  draw(pair, tokens) {
    const side = this.canvas.clientWidth;
    if (!side || !this.image) return;
    const margin = tokens ? Math.min(64, side / 5) : edge, inner = side - margin - edge, cell = inner / this.size;
    const context = prepare(this.canvas, side, side), {ink, soft, mark} = palette();
    this.margin = margin;
    context.save();
    context.translate(margin, margin);
    hatch(context, inner, inner);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.image, 0, 0, inner, inner);
    const [i, j] = pair;
    context.globalAlpha = 0.45;
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.strokeRect(-0.5, i * cell, inner + 1, cell);
    context.strokeRect(j * cell, -0.5, cell, inner + 1);
    context.globalAlpha = 1;
    context.strokeStyle = mark;
    context.lineWidth = 2;
    context.strokeRect(j * cell - 1, i * cell - 1, Math.max(cell, 3) + 2, Math.max(cell, 3) + 2);
    context.restore();
    if (!tokens) return;
    context.font = `${Math.max(8, Math.min(11, cell * 0.9))}px ui-monospace, monospace`;
    context.textBaseline = 'middle';
    const every = Math.ceil(9 / cell);
    tokens.forEach((token, t) => {
      const marked = t === i || t === j;
      if (t % every && !marked) return;
      const text = showToken(token).slice(0, 9);
      context.fillStyle = t === i ? mark : soft;
      context.textAlign = 'right';
      if (t % every === 0 || t === i) context.fillText(text, margin - 4, margin + (t + 0.5) * cell);
      context.fillStyle = t === j ? mark : soft;
      context.save();
      context.translate(margin + (t + 0.5) * cell, margin - 4);
      context.rotate(-Math.PI / 2);
      context.textAlign = 'left';
      if (t % every === 0 || t === j) context.fillText(text, 0, 0);
      context.restore();
    });
  }
  // The pair below a pointer, or null.
  pairAt(event) {
    const box = this.canvas.getBoundingClientRect(), cell = (box.width - this.margin - edge) / this.size;
    const j = Math.floor((event.clientX - box.left - this.margin) / cell);
    const i = Math.floor((event.clientY - box.top - this.margin) / cell);
    return i >= 0 && j >= 0 && i < this.size && j < this.size ? [i, j] : null;
  }
}

function listen(map, state, choosePair, chooseHead) {
  const point = (event) => {
    const pair = map.pairAt(event);
    if (pair) choosePair(pair);
  };
  map.canvas.addEventListener('pointermove', (event) => {
    if (event.pointerType === 'mouse' && !state.pinned) point(event);
  });
  map.canvas.addEventListener('pointerdown', (event) => {
    point(event);
    chooseHead?.();
  });
}

// Small multiples. events: {pair([i, j]), head(n)}
export class HeadMaps {
  constructor(element, state, events) {
    this.element = element;
    this.state = state;
    this.events = events;
    this.maps = [];
    element.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(element);
  }
  key(event) {
    const {size, pair: [i, j], head, heads} = this.state;
    const moves = {ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1], ArrowUp: [i - 1, j], ArrowDown: [i + 1, j],
      Home: [i, 0], End: [i, i]};
    if (moves[event.key]) {
      event.preventDefault();
      this.events.pair(moves[event.key].map((x) => Math.max(0, Math.min(size - 1, x))), true);
    }
    const turn = {PageDown: 1, PageUp: -1}[event.key];
    if (turn) {
      event.preventDefault();
      this.events.head((head + turn + heads) % heads);
    }
  }
  // map(n) -> (i, j) -> value
  set(heads, size, map, max) {
    if (this.maps.length !== heads) {
      this.maps = Array.from({length: heads}, (_, n) => new Map2d(`head ${n}`));
      this.maps.forEach((m, n) => listen(m, this.state, this.events.pair, () => this.events.head(n)));
      this.element.replaceChildren(...this.maps.map((m) => m.figure));
    }
    this.element.classList.toggle('many', heads > 12);
    this.maps.forEach((m, n) => m.set(size, map(n), max));
    this.draw();
  }
  draw() {
    this.maps.forEach((m, n) => {
      m.figure.classList.toggle('chosen', n === this.state.head);
      m.draw(this.state.pair);
    });
  }
}

// One head before, after and their difference.
export class Triple {
  constructor(element, state, choosePair) {
    this.maps = ['before', 'after', 'after − before'].map((label) => new Map2d(label));
    this.maps.forEach((m) => listen(m, state, choosePair));
    this.state = state;
    element.replaceChildren(...this.maps.map((m) => m.figure));
    new ResizeObserver(() => this.draw()).observe(element);
  }
  set(size, before, after, max, maxOfDifference, head) {
    const difference = (i, j) => after(i, j) - before(i, j);
    this.maps[0].set(size, before, max);
    this.maps[1].set(size, after, max);
    this.maps[2].set(size, difference, maxOfDifference);
    this.maps[0].name(`head ${head} before`);
    this.maps[1].name(`head ${head} after`);
    this.maps[2].name(`after − before (scale ±${short(maxOfDifference)})`);
    this.draw();
  }
  draw() {
    for (const m of this.maps) m.draw(this.state.pair, this.state.tokens);
  }
}
