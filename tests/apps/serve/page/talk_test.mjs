// What the page sends of what the model wrote: talk.js without a browser, and a server whose answers are made by hand.
// Usage: node talk_test.mjs SOURCE
import assert from 'node:assert/strict';
import {cpSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'braid-page-'));
cpSync(join(process.argv[2], 'apps/serve/page'), folder, {recursive: true});
writeFileSync(join(folder, 'package.json'), '{"type": "module"}');

// Any element, any of its properties, and what any call of it returns.
const any = new Proxy(() => {}, {get: (_, key) => key === Symbol.toPrimitive ? () => '' : any, set: () => true, apply: () => any});
const copied = [], sent = [], answers = [];
Object.assign(globalThis, {document: any, addEventListener() {}, sessionStorage: {getItem: () => null, setItem() {}}});
Object.defineProperty(globalThis, 'navigator', {value: {clipboard: {writeText: async (text) => copied.push(text)}}});
globalThis.fetch = async (_, {body}) => {
  sent.push(JSON.parse(body));
  return new Response(answers.shift().map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') + 'data: [DONE]\n\n');
};
const {Talk} = await import(join(folder, 'talk.js'));
rmSync(folder, {recursive: true});

const bytesOf = (text) => [...new TextEncoder().encode(text)];
const entry = (bytes) => ({token_id: bytes[0], token: new TextDecoder().decode(new Uint8Array(bytes)), bytes, logprob: -1});

// An answer of these tokens, each a list of bytes; its text arrives with the last one, ended by a further token `end`.
function answer(chat, tokens, text, reason, end) {
  return [...tokens, ...end ? [end] : []].map((bytes, t, all) => {
    const last = t + 1 === all.length, said = last ? text : '';
    return {prompt_token_ids: [1, 2], choices: [{...chat ? {delta: {content: said}} : {text: said},
      logprobs: {content: [{...entry(bytes), top_logprobs: [entry(bytes)]}]}, token_ids: bytes === end ? [] : [bytes[0]],
      finish_reason: last ? reason : null}]};
  });
}

// Words of the user and such an answer to them.
async function talk(mode, ...rest) {
  const chat = mode === 'chat', talk = Object.create(Talk.prototype);
  Object.assign(talk, {parts: [], abort: null, model: {id: 'm'}, mode: {value: mode}, tokens: any, context: 64,
    settings: {system: '', count: 9, request: () => ({})}, onError: (error) => assert.fail(error), room: async () => 9,
    enable() {}, status() {}, save() {}});
  talk.add({text: 'x', from: 'you'});
  answers.push(answer(chat, ...rest));
  await talk.generate();
  return talk;
}
const saidIn = (chat) => chat.messages().at(-1).content;

// A character of three tokens, and one that is not complete.
const character = [[0xe6], [0x97], [0xa5], [0xe6]];
const chat = await talk('chat', character, '日\ufffd', 'length');
assert.deepEqual(chat.messages(), [{role: 'user', content: 'x'}, {role: 'assistant', content: '日\ufffd'}]);
await chat.copy();
assert.deepEqual(copied, ['日\ufffd']);
const shown = () => chat.parts.map((part) => part.text);
assert.deepEqual(shown(), ['x', '日', '', '', '\ufffd']);
chat.cut(3);
assert.deepEqual(shown(), ['x', '\ufffd', '']);
const text = await talk('text', character, '日\ufffd', 'length');
assert.deepEqual(text.request().prompt, [1, 2, 0xe6, 0x97, 0xa5, 0xe6]);
text.add({text: 'é', from: 'you'});
assert.equal(text.request().prompt, 'x日\ufffdé');

// Stop strings, within a token and of two tokens, are no part of the text; nor is the token that ends an answer.
assert.equal(saidIn(await talk('chat', [[81], bytesOf('é##')], 'Qé', 'stop')), 'Qé');
assert.equal(saidIn(await talk('chat', [[81]], 'Q', 'stop', bytesOf('<|end|>'))), 'Q');
const stopped = await talk('text', [[81], [35], [35]], 'Q', 'stop');
assert.equal(stopped.request().prompt, 'xQ');

// Another token instead of the last one: what stood before it is text again.
answers.push(answer(false, [[90]], 'Z', 'length'));
stopped.continueWith(3, {id: 98, text: 'b', bytes: [98]});
assert.equal(stopped.text(), 'xQ#b');
while (answers.length || stopped.abort) await new Promise((done) => setTimeout(done, 1));
assert.deepEqual(sent.at(-1).prompt, [1, 2, 81, 35, 98]);
assert.equal(stopped.text(), 'xQ#bZ');
console.log('talk.js sends what the model wrote');
