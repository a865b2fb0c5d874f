// The matrix of a pair as a sum of its parts: W = identity + static + query-wise + key-wise + gates.
import {css, image, legend, palette, prepare, shade, short} from './colors.js';

const names = {total: 'W', identity: 'identity', base: 'static', query: 'query-wise', key: 'key-wise',
  query_gate: 'query gate', key_gate: 'key gate'};
const order = ['total', 'identity', 'base', 'query', 'key', 'query_gate', 'key_gate'];

export class Equation {
  constructor(element, readout, legendElement) {
    this.element = element;
    this.readout = readout;
    this.legend = legendElement;
    this.cell = [0, 0];
    this.panels = new Map();
    element.replaceChildren(...order.map((part, at) => {
      const figure = document.createElement('figure'), canvas = document.createElement('canvas');
      const caption = document.createElement('figcaption'), sign = document.createElement('span');
      canvas.role = 'img';
      canvas.setAttribute('aria-label', names[part]);
      caption.textContent = names[part];
      figure.append(canvas, caption);
      sign.className = 'sign';
      sign.setAttribute('aria-hidden', 'true');
      sign.textContent = at === 0 ? '' : at === 1 ? '=' : '+';
      canvas.addEventListener('pointermove', (event) => this.point(event, canvas));
      canvas.addEventListener('pointerdown', (event) => this.point(event, canvas));
      this.panels.set(part, {figure, canvas});
      figure.prepend(sign);
      return figure;
    }));
    element.addEventListener('keydown', (event) => {
      const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
      if (!move || !this.matrices) return;
      event.preventDefault();
      this.choose(this.cell.map((x, axis) => (x + move[axis] + this.heads) % this.heads));
    });
    new ResizeObserver(() => this.draw()).observe(element);
  }

  point(event, canvas) {
    if (!this.matrices) return;
    const box = canvas.getBoundingClientRect(), inner = box.width - this.strip, size = inner / this.heads;
    const n = Math.floor((event.clientX - box.left - this.strip) / size);
    const m = Math.floor((event.clientY - box.top - this.strip) / size);
    if (m >= 0 && n >= 0 && m < this.heads && n < this.heads) this.choose([m, n]);
  }

  choose(cell) {
    this.cell = cell;
    this.draw();
    this.tell();
  }

  // matrices: of compose.js
  set(heads, matrices, stage) {
    this.heads = heads;
    this.matrices = matrices;
    this.stage = stage;
    this.cell = this.cell.map((x) => Math.min(x, heads - 1));
    this.max = 0;
    for (const part of order.slice(2)) for (const x of matrices[part] ?? []) this.max = Math.max(this.max, Math.abs(x));
    this.max ||= 1;  // nothing but the identity
    this.draw();
    this.tell();
    legend(this.legend, this.max, true, 'weight in W; beyond that the color stays');
  }

  tell() {
    const [m, n] = this.cell, at = m * this.heads + n;
    const terms = order.slice(1).filter((part) => this.matrices[part])
      .map((part) => `${names[part]} ${short(this.matrices[part][at])}`);
    this.readout.textContent = `From head ${m} to head ${n}: W = ${short(this.matrices.total[at])} = ${terms.join(' + ')}`;
  }

  draw() {
    if (!this.matrices) return;
    const {panel, line, mark, soft} = palette();
    for (const [part, {figure, canvas}] of this.panels) {
      const values = this.matrices[part], N = this.heads, side = canvas.clientWidth;
      figure.classList.toggle('absent', !values);
      if (!side) continue;
      const c = prepare(canvas, side, side);
      this.strip = Math.round(side * 0.14);
      const inner = side - this.strip, size = inner / N;
      c.save();
      c.translate(this.strip, this.strip);
      c.fillStyle = panel;
      c.fillRect(0, 0, inner, inner);
      if (values) {
        c.imageSmoothingEnabled = false;
        c.drawImage(image(N, N, (m, n) => values[m * N + n], this.max), 0, 0, inner, inner);
      }
      c.strokeStyle = line;
      c.strokeRect(0.5, 0.5, inner - 1, inner - 1);
      if (values) {
        c.strokeStyle = mark;
        c.lineWidth = 2;
        c.strokeRect(this.cell[1] * size, this.cell[0] * size, size, size);
      }
      c.restore();
      const factors = this.matrices.factors[part];
      if (factors) this.drawFactors(c, factors, size);
      if (!values) {
        c.fillStyle = soft;
        c.font = '12px system-ui, sans-serif';
        c.textAlign = 'center';
        c.fillText('off', this.strip + inner / 2, this.strip + inner / 2);
      }
    }
  }

  // The vectors that read heads stand at the left, those that write above; one strip for each rank.
  drawFactors(c, {read, write}, size) {
    const R = read.length, wide = this.strip / R;
    for (const [vectors, down] of [[read, true], [write, false]]) {
      let max = 1e-12;
      for (const vector of vectors) for (const x of vector) max = Math.max(max, Math.abs(x));
      vectors.forEach((vector, r) => vector.forEach((x, n) => {
        c.fillStyle = css(shade(x, max));
        const along = this.strip + n * size, across = r * wide;
        c.fillRect(down ? across : along, down ? along : across, down ? wide - 1.5 : size, down ? size : wide - 1.5);
      }));
    }
  }
}
