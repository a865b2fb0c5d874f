// The text as tokens: the ground of a token tells how likely the model found it, a tip says the number, and a click shows
// what else it had in mind.
import {percent, showDirections, showToken} from './colors.js';

const $ = (id) => document.getElementById(id);

export class Tokens {
  // choose(at, token): another token instead of parts[at]; hint(): what happens then.
  constructor(box, {choose, hint}) {
    this.box = box;
    this.choose = choose;
    this.hint = hint;
    this.parts = new Map();  // of each element
    box.addEventListener('keydown', (event) => this.key(event));
    box.addEventListener('click', (event) => this.open(event.target.closest('.token')));
    box.addEventListener('pointerover', (event) => this.tip(event.target.closest('.token')));
    box.addEventListener('focusin', (event) => this.tip(event.target.closest('.token')));
    for (const leaving of ['pointerleave', 'focusout', 'scroll']) box.addEventListener(leaving, () => this.tip(null));
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close(true);
    });
    document.addEventListener('pointerdown', (event) => {
      if (!$('alternatives').contains(event.target)) this.close(false);
    });
  }

  clear() {
    this.parts.clear();
    this.box.replaceChildren();
  }
  cut(count) {
    while (this.box.children.length > count) {
      this.parts.delete(this.box.lastChild);
      this.box.lastChild.remove();
    }
  }

  add(part) {
    const element = document.createElement('span');
    element.className = part.token ? 'token' : part.from;
    if (part.token) {
      // A token is no button: a line could break before and behind one, within a word.
      element.role = 'button';
      element.tabIndex = -1;
      element.dataset.p = part.token.p;
      element.style.setProperty('--unlikely', (1 - part.token.p).toFixed(3));
      this.parts.set(element, part);
    }
    this.box.append(element);
    this.write(this.box.children.length - 1, part);
  }

  // The text of parts[at], which changes when a character becomes complete.
  write(at, part) {
    const element = this.box.children[at], text = showDirections(part.text);
    element.textContent = part.token ? text.replace(/\n/g, '↵\n') : text;
    if (part.token) element.setAttribute('aria-label', `${showToken(part.text)}, ${percent(part.token.p)}`);
  }

  // Arrow keys walk over the tokens.
  key(event) {
    const tokens = [...this.parts.keys()], at = tokens.indexOf(document.activeElement);
    if (at >= 0 && (event.key === 'Enter' || event.key === ' ')) {
      event.preventDefault();
      this.open(tokens[at]);
    }
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step || !tokens.length) return;
    event.preventDefault();
    tokens[at < 0 ? (step > 0 ? 0 : tokens.length - 1) : Math.max(0, Math.min(tokens.length - 1, at + step))].focus();
  }

  tip(element) {
    const part = this.parts.get(element), tip = $('tip');
    tip.hidden = !part || this.box.classList.contains('bare') || !$('alternatives').hidden;
    if (tip.hidden) return;
    tip.textContent = `${showToken(part.text)} ${percent(part.token.p)}`;
    const place = element.getClientRects()[0];
    put(tip, place.left, place.top - tip.offsetHeight - 4);
  }

  open(element) {
    const part = this.parts.get(element);
    if (!part) return;
    const box = $('alternatives'), title = document.createElement('p'), list = document.createElement('ul');
    const at = [...this.box.children].indexOf(element);
    title.textContent = `${showToken(part.text)} was ${percent(part.token.p)} likely. Here the model considered:`;
    list.append(...part.token.top.map((token) => {
      const item = document.createElement('li'), button = document.createElement('button');
      button.type = 'button';
      button.className = token.id === part.token.id ? 'chosen' : '';
      const word = document.createElement('span'), bar = document.createElement('span'), value = document.createElement('span');
      word.className = 'word';
      word.textContent = showToken(token.text);
      bar.className = 'fill';
      bar.style.setProperty('--p', token.p);
      value.className = 'value';
      value.textContent = percent(token.p);
      button.append(word, bar, value);
      button.addEventListener('click', () => {
        this.close(false);
        this.choose(at, {...token, top: part.token.top});
      });
      item.append(button);
      return item;
    }));
    const hint = document.createElement('p');
    hint.className = 'hint';
    hint.textContent = this.hint();
    box.replaceChildren(title, list, hint);
    box.hidden = false;
    this.tip(null);
    const place = element.getClientRects()[0];
    put(box, place.left, place.bottom + 6);
    this.opener = element;
    (list.querySelector('button') ?? box).focus();
    list.onkeydown = (event) => {
      const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const all = [...list.querySelectorAll('button')];
      all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus();
    };
  }

  close(focus) {
    if ($('alternatives').hidden) return;
    $('alternatives').hidden = true;
    if (focus) this.opener?.focus();
  }
}

// At a point of the window, within its width.
function put(element, left, top) {
  const most = document.documentElement.clientWidth - element.offsetWidth - 8;
  element.style.left = `${Math.max(8, Math.min(left, most)) + scrollX}px`;
  element.style.top = `${Math.max(0, top) + scrollY}px`;
}
