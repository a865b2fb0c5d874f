// The heads of one pair before and after mixing, and a line for what each gives to each.
import {css, palette, prepare, shade, short} from './colors.js';

export class Flow {
  constructor(canvas) {
    this.canvas = canvas;
    this.to = null;    // the head whose sources are shown alone
    this.shown = null;  // values on their way to the newest ones
    canvas.addEventListener('pointermove', (event) => this.point(event));
    canvas.addEventListener('pointerleave', () => this.choose(null));
    canvas.addEventListener('keydown', (event) => {
      const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
      if (event.key === 'Escape') this.choose(null);
      if (!step || !this.target) return;
      event.preventDefault();
      const N = this.target.before.length;
      this.choose(this.to === null ? (step > 0 ? 0 : N - 1) : (this.to + step + N) % N);
    });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  point(event) {
    if (!this.target) return;
    const N = this.target.before.length, y = event.offsetY - this.top;
    const n = Math.floor(y / this.row);
    this.choose(event.offsetX > this.canvas.clientWidth / 2 && n >= 0 && n < N ? n : null);
  }
  choose(n) {
    if (n === this.to) return;
    this.to = n;
    this.draw();
  }

  // before, after (N); carried (N, N): A[m] W[m,n]; a pair that is masked has none.
  set(target) {
    this.target = target;
    this.canvas.setAttribute('aria-label', target.masked ? 'This key is masked for this query.'
      : `Heads before and after mixing: ${[...target.before].map((x, n) => `head ${n} ${short(x)} becomes ${short(target.after[n])}`).join(', ')}`);
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    if (still || !this.shown || this.shown.before.length !== target.before.length) {
      this.shown = copy(target);
      return this.draw();
    }
    cancelAnimationFrame(this.frame);
    const from = copy(this.shown), begin = performance.now();
    const step = (now) => {
      const t = Math.min(1, (now - begin) / 180), ease = t * (2 - t);
      for (const name of ['before', 'after', 'carried'])
        for (let e = 0; e < this.shown[name].length; e++)
          this.shown[name][e] = from[name][e] + (target[name][e] - from[name][e]) * ease;
      this.draw();
      if (t < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  draw() {
    if (!this.shown) return;
    const N = this.shown.before.length, width = this.canvas.clientWidth;
    this.row = Math.max(15, Math.min(34, 340 / N));
    this.top = 22;
    const height = this.top + N * this.row + 6;
    this.canvas.style.height = `${height}px`;
    const c = prepare(this.canvas, width, height), {ink, soft, line} = palette();
    const {before, after, carried} = this.shown, masked = this.target.masked;
    const bar = Math.min(110, width * 0.2), label = 22, left = label + bar, right = width - label - bar;
    const y = (n) => this.top + (n + 0.5) * this.row;
    let max = 1e-12;
    for (const x of [...before, ...after]) max = Math.max(max, Math.abs(x));
    const thick = this.row * 0.8 / max;

    c.font = '12px system-ui, sans-serif';
    c.textBaseline = 'middle';
    c.fillStyle = soft;
    c.textAlign = 'left';
    c.fillText('before', label, 9);
    c.textAlign = 'right';
    c.fillText('after', width - label, 9);
    if (masked) {
      c.textAlign = 'center';
      c.fillText('masked: this query may not see this key', width / 2, height / 2);
    }
    const order = [];
    for (let m = 0; m < N; m++) for (let n = 0; n < N; n++) order.push([m, n]);
    order.sort(([a, b], [p, q]) => Math.abs(carried[a * N + b]) - Math.abs(carried[p * N + q]));
    for (const [m, n] of masked ? [] : order) {
      const x = carried[m * N + n], w = Math.abs(x) * thick;
      if (w < 0.12) continue;
      const alone = this.to === null || this.to === n;
      c.globalAlpha = alone ? (this.to === null ? 0.55 : 0.85) : 0.05;
      c.strokeStyle = css(shade(x < 0 ? -1 : 1, 1));
      c.lineWidth = Math.max(0.5, w);
      c.beginPath();
      c.moveTo(left + 3, y(m));
      const bend = (right - left) * 0.45;
      c.bezierCurveTo(left + bend, y(m), right - bend, y(n), right - 3, y(n));
      c.stroke();
    }
    c.globalAlpha = 1;
    for (let n = 0; n < N; n++) {
      const h = Math.max(4, this.row * 0.55);
      c.fillStyle = line;
      c.fillRect(label, y(n) - 0.5, bar, 1);
      c.fillRect(right, y(n) - 0.5, bar, 1);
      const a = Math.abs(before[n]) / max * bar, b = Math.abs(after[n]) / max * bar;
      c.fillStyle = css(shade(before[n] < 0 ? -1 : 1, 1));
      c.fillRect(left - a, y(n) - h / 2, a, h);
      c.fillStyle = css(shade(after[n] < 0 ? -1 : 1, 1));
      c.fillRect(right, y(n) - h / 2, b, h);
      c.fillStyle = this.to === n ? ink : soft;
      c.font = `${this.to === n ? '600 ' : ''}12px system-ui, sans-serif`;
      c.textAlign = 'left';
      c.fillText(String(n), 2, y(n));
      c.textAlign = 'right';
      c.fillText(String(n), width - 2, y(n));
    }
  }
}

const copy = ({before, after, carried}) => ({before: Float64Array.from(before), after: Float64Array.from(after),
  carried: Float64Array.from(carried)});
