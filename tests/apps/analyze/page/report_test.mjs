// The maps of a report: report.js without a browser.
// Usage: node report_test.mjs SOURCE
import assert from 'node:assert/strict';
import {cpSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'braid-report-'));
for (const page of ['apps/serve/page', 'apps/analyze/page'])
  cpSync(join(process.argv[2], page), folder, {recursive: true});
writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
globalThis.document = {getElementById: () => ({textContent: '{"models": []}'})};
const {unpack} = await import(join(folder, 'report.js'));
rmSync(folder, {recursive: true});

const stored = (numbers) => Buffer.from(Float32Array.from(numbers).buffer).toString('base64');
function same(got, want) {
  assert.equal(got.length, want.length);
  want.forEach((x, at) => assert.ok(got[at] === x || Math.abs(got[at] - x) < 1e-6, `${got[at]} at ${at}, expected ${x}`));
}
// One head of two tokens: e^ln 3 is 3 times e^0.
const none = -Infinity, scores = [5, 0, Math.log(3)];

// Causal: rows up to the query. The probabilities are the softmax.
let {maps} = unpack({heads: 1, scores: stored(scores), weights: {}}, 2);
same(maps.attn_scores, [5, none, 0, Math.log(3)]);
same(maps.attn_probs, [1, 0, 0.25, 0.75]);

// With static mixing after the softmax, which adds half of each probability.
const weights = {'dyn.post.w': {shape: [1, 1, 1], data: stored([0.5])}};
({maps} = unpack({heads: 1, scores: stored(scores), weights}, 2));
same(maps.attn_probs_composed, [1.5, none, 0.375, 1.125]);

// All keys of each query.
({maps} = unpack({heads: 1, scores: stored([Math.log(3), 0, 0, 0]), weights}, 2));
same(maps.attn_probs, [0.75, 0.25, 0.5, 0.5]);
same(maps.attn_probs_composed, [1.125, 0.375, 0.75, 0.75]);

// Maps that do not follow from the scores are taken as they are.
const others = {attn_scores_composed: scores, attn_probs: [0.5, 0.2, 0.3], attn_probs_composed: [0.5, 0.2, 0.3]};
for (const name in others) others[name] = stored(others[name]);
({maps} = unpack({heads: 1, scores: stored(scores), weights: {}, maps: others}, 2));
same(maps.attn_probs, [0.5, none, 0.2, 0.3]);
same(maps.attn_scores_composed, [5, none, 0, Math.log(3)]);
same(maps.attn_scores, [5, none, 0, Math.log(3)]);
