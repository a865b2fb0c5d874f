// Colors of values. Blue is more, orange is less: a pair that people of every color vision tell apart; the middle is the
// color of the page. Values are drawn by the square root of their size, so that small ones show.

const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

let theme = null;
export function palette() {
  theme ??= Object.fromEntries(
    ['ink', 'soft', 'line', 'paper', 'panel', 'more', 'less', 'mark'].map((name) => [name, read(`--${name}`)]));
  return theme;
}
export function forgetPalette() {
  theme = null;
}

// value / max in [-1, 1] -> [r, g, b]
export function shade(value, max) {
  const {panel, more, less} = palette();
  const t = Math.min(1, Math.sqrt(Math.abs(value) / (max || 1)));
  const from = parse(panel), to = parse(value < 0 ? less : more);
  return from.map((x, c) => Math.round(x + (to[c] - x) * t));
}
export const css = ([r, g, b]) => `rgb(${r}, ${g}, ${b})`;

// A canvas in real pixels of the screen; the context counts in CSS pixels.
export function prepare(canvas, width, height) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// An image of rows x columns values, a pixel each; where `masked` holds for a value it stays clear.
export function image(rows, columns, value, max) {
  const canvas = document.createElement('canvas');
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d'), pixels = context.createImageData(columns, rows);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) {
      const x = value(i, j), at = 4 * (i * columns + j);
      if (!Number.isFinite(x)) continue;
      [pixels.data[at], pixels.data[at + 1], pixels.data[at + 2]] = shade(x, max);
      pixels.data[at + 3] = 255;
    }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

// Hatching of keys that are masked.
export function hatch(context, width, height) {
  context.save();
  context.beginPath();
  context.rect(0, 0, width, height);
  context.clip();
  context.strokeStyle = palette().line;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = -height; x < width; x += 6) {
    context.moveTo(x, height);
    context.lineTo(x + height, 0);
  }
  context.stroke();
  context.restore();
}

// Fills a legend with the scale from -max (or 0) to max.
export function legend(element, max, signed, what) {
  element.replaceChildren();
  const canvas = document.createElement('canvas');
  canvas.setAttribute('aria-hidden', 'true');
  canvas.className = 'ramp';
  const context = prepare(canvas, 120, 10);
  for (let x = 0; x < 120; x++) {
    context.fillStyle = css(shade(signed ? (x - 60) / 60 * max : x / 120 * max, max));
    context.fillRect(x, 0, 1, 10);
  }
  element.append(signed ? short(-max) : '0', canvas, `${short(max)} ${what}`);
}

// A number in few characters, with a real minus.
export function short(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return '–';
  if (!Number.isFinite(x)) return x < 0 ? '−∞' : '∞';
  const size = Math.abs(x);
  const text = size === 0 ? '0' : size >= 100 ? x.toFixed(0) : size >= 10 ? x.toFixed(1) : size >= 0.01 ? x.toFixed(3)
    : x.toExponential(1);
  return text.replace('-', '−');
}
export const percent = (p) => p >= 0.9995 ? '100%' : p >= 0.0995 ? `${(100 * p).toFixed(0)}%`
  : p >= 0.00095 ? `${(100 * p).toFixed(1)}%` : '<0.1%';

// Characters that change the direction of the text around them as \u and four digits: it would lie about its order.
export const showDirections = (text) => text.replace(/[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g,
  (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

// A token as text that one can see.
export const showToken = (text) => text === undefined || text === '' ? '∅'
  : showDirections(text).replace(/\n/g, '↵').replace(/\t/g, '⇥').replace(/ /g, '·').replace(/\uFFFD/g, '�');
