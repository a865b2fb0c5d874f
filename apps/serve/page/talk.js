// Talking: a text that the model continues, or a conversation. Every new token keeps its probability and alternatives.
import {postJson, stream} from './api.js';
import {Choice} from './choice.js';
import {percent, showDirections, showToken} from './colors.js';

const $ = (id) => document.getElementById(id);

export class Talk {
  // context: the model's longest sequence.
  constructor(model, context, onError) {
    this.model = model;
    this.context = context;
    this.onError = onError;
    // {text, from: 'you' | 'model', token: {id, p, top}, run}; run: {prompt, first}, the ids in front of parts[first].
    this.parts = [];
    this.abort = null;
    this.mode = new Choice($('mode'), () => this.clear());
    this.mode.set([{value: 'text', label: 'Text', title: 'the model continues what you write'},
      {value: 'chat', label: 'Chat', title: 'the model answers'}], 'text');
    $('talk-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.send();
    });
    $('prompt').addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.send();
      }
    });
    $('stop').addEventListener('click', () => this.stop());
    $('clear').addEventListener('click', () => this.clear());
    $('temperature').addEventListener('input', () => { $('temperature-value').textContent = Number($('temperature').value).toFixed(1); });
    $('show-probabilities').addEventListener('change', () =>
      $('transcript').classList.toggle('bare', !$('show-probabilities').checked));
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.closeAlternatives(true);
    });
    document.addEventListener('pointerdown', (event) => {
      if (!$('alternatives').contains(event.target)) this.closeAlternatives(false);
    });
    $('transcript').addEventListener('keydown', (event) => this.moveFocus(event));
    this.clear();
  }

  get chat() { return this.mode.value === 'chat'; }
  text() { return this.parts.map((part) => part.text).join(''); }

  clear() {
    this.stop();
    this.parts = [];
    $('transcript').replaceChildren();
    $('transcript').classList.toggle('chat', this.chat);
    $('send').textContent = this.chat ? 'Send' : 'Continue';
    $('prompt').placeholder = this.chat ? 'Say something' : 'Write the beginning of a text';
    this.status(' ');
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
  }

  status(text) { $('talk-status').textContent = text; }

  send() {
    if (this.abort) return;
    const written = $('prompt').value;
    if (this.chat && !written.trim()) return this.status('Write something first.');
    if (written) this.add({text: written, from: 'you'});
    if (this.parts.length === 0) return this.status('Write something first.');
    $('prompt').value = '';
    this.generate();
  }

  messages(parts = this.parts) {
    const messages = [];
    for (const part of parts) {
      const role = part.from === 'you' ? 'user' : 'assistant', last = messages.at(-1);
      const content = part.token?.end ? '' : part.text;
      if (last?.role === role) last.content += content;
      else messages.push({role, content});
    }
    // What ends an answer is a part of the template.
    for (const message of messages) if (message.role === 'assistant') message.content = message.content.trimEnd();
    return messages;
  }

  // The ids of all tokens, where the text ends with tokens of the model; otherwise the whole text becomes tokens anew.
  ids() {
    const run = this.parts.at(-1)?.run;
    return run ? [...run.prompt, ...this.parts.slice(run.first).map((part) => part.token.id)] : null;
  }

  // What is asked for: the text as ids or as text; a chat's messages, and the tokens that the answer begins with.
  request() {
    if (!this.chat) return {prompt: this.ids() ?? this.text(), logprobs: 8};
    let first = this.parts.length;
    while (first > 0 && this.parts[first - 1].token) --first;
    const answer = this.parts.slice(first).map((part) => part.token.id);
    return {messages: this.messages(this.parts.slice(0, first)), answer_token_ids: answer, logprobs: true, top_logprobs: 8};
  }

  // How many of the tokens that were asked for still fit behind the text. A template adds some to each message.
  async room(asked) {
    const known = this.chat ? null : this.ids();
    const count = known ? known.length : (await postJson('/tokenize', {prompt: this.text()})).count;
    const margin = this.chat ? 16 * (this.messages().length + 1) : 1;
    const room = this.context - count - margin;
    if (room < 1) throw new Error(`The text has ${count} tokens; this model reads at most ${this.context}. Clear it to begin anew.`);
    return Math.min(asked, room);
  }

  async generate() {
    const abort = this.abort = new AbortController();
    $('send').disabled = true;
    $('stop').disabled = false;
    this.status('The model reads…');
    const begun = performance.now(), before = this.parts.length;
    let ended = '';
    try {
      const count = await this.room(Math.max(1, Math.min(1000, Number($('count').value) || 48)));
      const body = {...this.request(), model: this.model, max_tokens: count, return_token_ids: true,
        temperature: Number($('temperature').value)};
      const run = {prompt: [], first: before};
      for await (const event of stream(this.chat ? '/v1/chat/completions' : '/v1/completions', body, abort.signal)) {
        const choice = event.choices?.[0];
        if (!choice) continue;
        run.prompt = event.prompt_token_ids ?? choice.prompt_token_ids ?? run.prompt;
        for (const token of tokensOf(choice)) this.add({text: token.text, from: 'model', token, run});
        if (choice.finish_reason) ended = choice.finish_reason === 'length' ? '' : 'The text ends here.';
        const seconds = (performance.now() - begun) / 1000, made = this.parts.length - before;
        if (made) this.status(`${made} tokens, ${(made / seconds).toFixed(1)} tokens/s`);
      }
      if (ended) this.status(`${$('talk-status').textContent}. ${ended}`);
    } catch (error) {
      if (error.name === 'AbortError') this.status(`${$('talk-status').textContent.replace('The model reads…', '')} Stopped.`);
      else {
        this.status(error.message);
        this.onError(error);
      }
    } finally {
      if (this.abort === abort) this.abort = null;
      $('send').disabled = this.abort !== null;
      $('stop').disabled = this.abort === null;
    }
  }

  add(part) {
    this.parts.push(part);
    const box = $('transcript'), atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 40;
    box.append(this.element(part));
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  element(part) {
    if (!part.token) {
      const span = document.createElement('span');
      span.className = part.from;
      span.textContent = showDirections(part.text);
      return span;
    }
    const button = document.createElement('button'), text = document.createElement('span'), p = document.createElement('span');
    button.type = 'button';
    button.className = 'token';
    button.tabIndex = -1;
    text.className = 'text';
    text.textContent = showDirections(part.text).replace(/\n/g, '↵');
    p.className = 'p';
    p.textContent = percent(part.token.p);
    p.style.setProperty('--p', Math.max(0.04, part.token.p));
    button.setAttribute('aria-label', `${showToken(part.text)}, ${percent(part.token.p)}`);
    button.append(text, p);
    button.addEventListener('click', () => this.openAlternatives(part, button));
    const whole = document.createElement('span');
    whole.append(button);
    if (part.text.includes('\n')) whole.append(document.createElement('br'));
    return whole;
  }

  // Arrow keys walk over the tokens.
  moveFocus(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const tokens = [...$('transcript').querySelectorAll('.token')];
    if (!tokens.length) return;
    event.preventDefault();
    const at = tokens.indexOf(document.activeElement);
    tokens[at < 0 ? (step > 0 ? 0 : tokens.length - 1) : Math.max(0, Math.min(tokens.length - 1, at + step))].focus();
  }

  openAlternatives(part, button) {
    const box = $('alternatives'), at = this.parts.indexOf(part);
    const title = document.createElement('p'), list = document.createElement('ul');
    title.textContent = 'Here the model considered:';
    list.append(...part.token.top.map(({id, text, p}) => {
      const item = document.createElement('li'), choose = document.createElement('button');
      choose.type = 'button';
      choose.className = id === part.token.id ? 'chosen' : '';
      const word = document.createElement('span'), bar = document.createElement('span'), value = document.createElement('span');
      word.className = 'word';
      word.textContent = showToken(text);
      bar.className = 'fill';
      bar.style.setProperty('--p', p);
      value.className = 'value';
      value.textContent = percent(p);
      choose.append(word, bar, value);
      choose.addEventListener('click', () =>
        this.regenerate(at, {text, from: 'model', token: {id, p, top: part.token.top}, run: part.run}));
      item.append(choose);
      return item;
    }));
    const hint = document.createElement('p');
    hint.className = 'hint';
    hint.textContent = `Choose one: the ${this.chat ? 'answer' : 'text'} continues from there.`;
    box.replaceChildren(title, list, hint);
    box.hidden = false;
    const place = button.getBoundingClientRect(), width = box.offsetWidth;
    box.style.left = `${Math.max(8, Math.min(place.left, document.documentElement.clientWidth - width - 8)) + scrollX}px`;
    box.style.top = `${place.bottom + 6 + scrollY}px`;
    this.opener = button;
    (list.querySelector('button') ?? box).focus();
    list.onkeydown = (event) => {
      const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const all = [...list.querySelectorAll('button')];
      all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus();
    };
  }

  closeAlternatives(focus) {
    if ($('alternatives').hidden) return;
    $('alternatives').hidden = true;
    if (focus) this.opener?.focus();
  }

  regenerate(at, part) {
    this.closeAlternatives(false);
    this.stop();
    this.parts.length = at;
    while ($('transcript').children.length > at) $('transcript').lastChild.remove();
    this.add(part);
    this.generate();
  }
}

// The tokens of a streamed piece: {id, text, p, top, end}, top sorted by probability and with the token itself. end: it
// ended the text and is not a part of it.
function tokensOf(choice) {
  const token = ({token_id, token, logprob}) => ({id: token_id, text: token, p: Math.exp(logprob)});
  return (choice.logprobs?.content ?? []).map((entry, t) => {
    const own = token(entry), top = entry.top_logprobs.map(token);
    if (!top.some((other) => other.id === own.id)) top.push(own);
    return {...own, top: top.sort((a, b) => b.p - a.p), end: t >= choice.token_ids.length};
  });
}
