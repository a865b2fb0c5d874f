// Talking: a text that the model continues, or a conversation. Every new token keeps its probability and alternatives.
import {postJson, stream} from './api.js';
import {Choice} from './choice.js';
import {Settings} from './settings.js';
import {Tokens} from './tokens.js';

const $ = (id) => document.getElementById(id);
const kept = 'braid-talk';  // in the session's storage
const generic = {
  text: ['Once upon a time', 'The first thing to know is', 'In the beginning'],
  chat: ['Hello! Who are you?', 'Tell me a short story.', 'Explain what a token is.'],
};

export class Talk {
  // model: {id, max_model_len, own_chat_template, beginnings}
  constructor(model, onError) {
    this.model = model;
    this.context = model.max_model_len;
    this.onError = onError;
    // {text, from: 'you' | 'model', token: {id, bytes, p, top}, bytes, run}; bytes: of the token, without those of a stop
    // string; run: {prompt, first, text}, the ids in front of parts[first], and what the server said of it as text.
    this.parts = [];
    this.abort = null;
    this.mode = new Choice($('mode'), () => this.clear());
    this.mode.set([{value: 'text', label: 'Text', title: 'the model continues what you write'},
      {value: 'chat', label: 'Chat', title: 'the model answers'}], 'text');
    this.settings = new Settings(() => this.save());
    this.tokens = new Tokens($('transcript'), {
      choose: (at, token) => this.continueWith(at, token),
      hint: () => `Choose one: the ${this.chat ? 'answer' : 'text'} continues from there.`,
    });
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
    const clicks = {stop: () => this.stop(), clear: () => this.clear(), copy: () => this.copy(), again: () => this.again(),
      edit: () => this.edit()};
    for (const [id, click] of Object.entries(clicks)) $(id).addEventListener('click', click);
    $('show-probabilities').addEventListener('change', () =>
      $('transcript').classList.toggle('bare', !$('show-probabilities').checked));
    addEventListener('pagehide', () => this.save());
    this.clear(this.restore());
  }

  get chat() { return this.mode.value === 'chat'; }
  text() { return textOf(this.parts); }
  status(text) { $('talk-status').textContent = text; }

  // parts: to begin with.
  clear(parts = []) {
    this.stop();
    this.parts = [];
    this.tokens.clear();
    for (const part of parts) this.add(part);
    $('transcript').classList.toggle('chat', this.chat);
    $('send').textContent = this.chat ? 'Send' : 'Continue';
    $('prompt').placeholder = this.chat ? 'Say something' : 'Write the beginning of a text';
    $('system-field').hidden = !this.chat;
    $('untrained').hidden = !this.chat || this.model.own_chat_template !== false;
    this.offer();
    this.status(' ');
    this.save();
    this.enable();
  }

  // Three beginnings, where nothing is written yet.
  offer() {
    const own = this.chat ? [] : this.model.beginnings ?? [];
    const texts = [...own, ...generic[this.mode.value]].slice(0, 3);
    $('beginnings').replaceChildren(...texts.map((text) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = text;
      button.addEventListener('click', () => {
        $('prompt').value = text;
        this.send();
      });
      return button;
    }));
  }

  enable() {
    const busy = this.abort !== null;
    $('send').disabled = busy;
    $('stop').disabled = !busy;
    $('copy').disabled = !this.parts.length;
    $('again').disabled = busy || !this.parts.length;
    $('edit').disabled = busy || !this.parts.some((part) => part.from === 'you');
    $('transcript').hidden = !this.parts.length;
    $('empty').hidden = this.parts.length > 0;
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
  }

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
    for (let first = 0, end; first < parts.length; first = end) {
      for (end = first + 1; end < parts.length && parts[end].from === parts[first].from;) ++end;
      const content = textOf(parts.slice(first, end).filter((part) => !part.token?.end));
      // What ends an answer is a part of the template.
      messages.push(parts[first].from === 'you' ? {role: 'user', content} : {role: 'assistant', content: content.trimEnd()});
    }
    if (this.settings.system) messages.unshift({role: 'system', content: this.settings.system});
    return messages;
  }

  // The ids of all tokens, where the text ends with tokens of the model and these are no stop string; otherwise the whole
  // text becomes tokens anew.
  ids() {
    const {run, bytes, token} = this.parts.at(-1) ?? {};
    if (!run || bytes?.length !== token.bytes?.length) return null;
    return [...run.prompt, ...this.parts.slice(run.first).map((part) => part.token.id)];
  }

  // The first part of what the model wrote last.
  lastRun() {
    let first = this.parts.length;
    while (first > 0 && this.parts[first - 1].token) --first;
    return first;
  }

  // What is asked for: the text as ids or as text; a chat's messages, and the tokens that the answer begins with.
  request() {
    if (!this.chat) return {prompt: this.ids() ?? this.text(), logprobs: 8};
    const first = this.lastRun(), answer = this.parts.slice(first).map((part) => part.token.id);
    return {messages: this.messages(this.parts.slice(0, first)), answer_token_ids: answer, logprobs: true, top_logprobs: 8};
  }

  // How many of the tokens that were asked for still fit behind the text. A template adds some to each message.
  async room(asked) {
    const known = this.chat ? null : this.ids();
    const text = this.chat ? this.settings.system + this.text() : this.text();
    const count = known ? known.length : (await postJson('/tokenize', {prompt: text})).count;
    const margin = this.chat ? 16 * (this.messages().length + 1) : 1;
    const room = this.context - count - margin;
    if (room < 1) throw new Error(`The text has ${count} tokens; this model reads at most ${this.context}. Clear it to begin anew.`);
    return Math.min(asked, room);
  }

  async generate() {
    const abort = this.abort = new AbortController();
    this.enable();
    this.status('The model reads…');
    const begun = performance.now(), before = this.parts.length;
    let ended = '';
    try {
      const count = await this.room(this.settings.count);
      const body = {...this.request(), ...this.settings.request(), model: this.model.id, max_tokens: count,
        return_token_ids: true};
      const run = {prompt: [], first: before, text: ''};
      for await (const event of stream(this.chat ? '/v1/chat/completions' : '/v1/completions', body, abort.signal)) {
        const choice = event.choices?.[0];
        if (!choice) continue;
        run.prompt = event.prompt_token_ids ?? choice.prompt_token_ids ?? run.prompt;
        run.text += choice.text ?? choice.delta.content ?? '';
        for (const token of tokensOf(choice)) this.add({text: token.text, bytes: token.bytes, from: 'model', token, run});
        if (choice.finish_reason === 'stop') this.leaveOutStop(run);
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
      this.enable();
      this.save();
    }
  }

  add(part) {
    this.parts.push(part);
    const box = $('transcript'), atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 40;
    this.tokens.add(part);
    this.showCharacters();
    if (this.parts.length === 1) this.enable();
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  // A stop string is shown, and no part of the text: the bytes behind what the server said are not those of a part.
  leaveOutStop(run) {
    const parts = this.parts.slice(run.first).filter((part) => !part.token.end);
    if (!textOf(parts).startsWith(run.text)) return;  // a special token is among them
    for (let at = parts.length - 1; textOf(parts).length > run.text.length;) {
      if (parts[at].bytes.length) parts[at].bytes = parts[at].bytes.slice(0, -1);
      else --at;
    }
  }

  cut(count) {
    const run = this.parts[count]?.run;  // what is left of it ends with no stop string
    for (const part of this.parts) if (run && part.run === run) part.bytes = part.token.bytes;
    this.parts.length = count;
    this.tokens.cut(count);
    this.showCharacters();
  }

  // The first token of a character shows all of it, or U+FFFD until it is complete; the others show what else they begin.
  showCharacters() {
    const isOfModel = (at) => this.parts[at]?.token?.bytes;
    for (let at = this.parts.length - 1, rest = []; isOfModel(at); --at) {
      const part = this.parts[at], {bytes} = part.token, n = isOfModel(at - 1) ? continuing(bytes) : 0;
      part.text = n < bytes.length ? decoded([...bytes.slice(n), ...rest]) : '';
      this.tokens.write(at, part);
      if (n === 0) return;
      rest = n < bytes.length ? bytes.slice(0, n) : [...bytes, ...rest];
    }
  }

  // Another token instead of one of the model's: the text continues behind it.
  continueWith(at, token) {
    const run = this.parts[at].run;
    this.stop();
    this.cut(at);
    this.add({text: token.text, bytes: token.bytes, from: 'model', token, run});
    this.generate();
  }

  // What the model wrote behind the last words of the user, once more.
  again() {
    if (this.abort) return;
    this.cut(this.lastRun());
    this.generate();
  }

  // The last message back into the field, without what came behind it.
  edit() {
    if (this.abort) return;
    const at = this.parts.findLastIndex((part) => part.from === 'you');
    if (at < 0) return;
    $('prompt').value = this.parts[at].text;
    this.cut(at);
    this.enable();
    this.save();
    $('prompt').focus();
  }

  // The text, or the last answer of a conversation.
  async copy() {
    const parts = this.chat ? this.parts.slice(this.lastRun()) : this.parts;
    const text = textOf(parts.filter((part) => !part.token?.end));
    try {
      await navigator.clipboard.writeText(text);
      this.status('Copied.');
    } catch {
      this.status('The browser does not let this page copy; select the text instead.');
    }
  }

  save() {
    const runs = [...new Set(this.parts.map((part) => part.run).filter(Boolean))];
    const parts = this.parts.map((part) => ({...part, run: runs.indexOf(part.run)}));
    try {
      sessionStorage.setItem(kept, JSON.stringify(
        {model: this.model.id, mode: this.mode.value, prompt: $('prompt').value, settings: this.settings.save(), runs, parts}));
    } catch { /* a text that is too long for the storage is lost at a reload, as without it */ }
  }

  // The parts of a saved text of this model.
  restore() {
    try {
      const saved = JSON.parse(sessionStorage.getItem(kept));
      if (saved?.model !== this.model.id) return [];
      this.mode.mark(saved.mode === 'chat' ? 'chat' : 'text');
      $('prompt').value = saved.prompt;
      this.settings.load(saved.settings);
      return saved.parts.map(({run, ...part}) => run < 0 ? part : {...part, run: saved.runs[run]});
    } catch {
      return [];
    }
  }
}

const decoded = (bytes) => new TextDecoder('utf-8', {ignoreBOM: true}).decode(new Uint8Array(bytes));

// The text of parts. A character may have several tokens.
const textOf = (parts) => decoded(parts.flatMap((part) => part.bytes ?? [...new TextEncoder().encode(part.text)]));

// How many bytes of a token continue a character of the token before.
function continuing(bytes) {
  const n = bytes.findIndex((byte) => (byte & 0xc0) !== 0x80);
  return n < 0 ? bytes.length : n;
}

// The tokens of a streamed piece: {id, text, bytes, p, top, end}, top sorted by probability and with the token itself. end: it
// ended the text and is not a part of it.
function tokensOf(choice) {
  const token = ({token_id, token, bytes, logprob}) => ({id: token_id, text: token, bytes, p: Math.exp(logprob)});
  return (choice.logprobs?.content ?? []).map((entry, t) => {
    const own = token(entry), top = entry.top_logprobs.map(token);
    if (!top.some((other) => other.id === own.id)) top.push(own);
    return {...own, top: top.sort((a, b) => b.p - a.p), end: t >= choice.token_ids.length};
  });
}
