#include "braid/autograd/ops/attention_documents.h"

#include <algorithm>

#include "braid/autograd/ops.h"
#include "braid/autograd/ops/attention_reference.h"
#include "braid/autograd/recompute.h"

namespace braid {

namespace {

// The call on one document, as recorded slices.
DcmhaInputs recorded_part(DcmhaInputs x, const QueryBlock& document) {
  using enum AttentionRole::Positions;
  for_each_tensor(
      [&](const AttentionRole& role, Tensor& t) {
        if (!t || role.positions == none) return;
        const bool rows = role.positions == queries;
        const int64_t begin = rows ? document.t0 : document.s0, count = rows ? document.rows : document.keys;
        t = slice(slice(t, 0, document.b0, document.b0 + document.samples), 1, begin, begin + count);
      },
      x);
  x.mask.offset += document.t0 - document.s0;
  return x;
}

// (1 or B, 1 or N, T, S), the block's part
Tensor recorded_part(const Tensor& x, const QueryBlock& block) {
  if (!x) return x;
  const Tensor sample = x.dim(0) == 1 ? x : slice(x, 0, block.b0, block.b0 + block.samples);
  return slice(slice(sample, 2, block.t0, block.t0 + block.rows), 3, block.s0, block.s0 + block.keys);
}
AttentionExtras recorded_part(AttentionExtras extras, const QueryBlock& block, size_t index) {
  extras.attend = recorded_part(extras.attend, block);
  extras.bias = recorded_part(extras.bias, block);
  extras.dropout_key = child(extras.dropout_key, static_cast<uint64_t>(index));
  return extras;
}

// attention_reference() as a segment.
Tensor computed_again(const DcmhaInputs& x, const AttentionExtras& extras) {
  std::vector<Tensor> inputs{extras.bias};
  for_each_tensor([&](const AttentionRole&, const Tensor& t) { inputs.push_back(t); }, x);
  return recompute(
      [x, extras](const std::vector<Tensor>& leaves) {
        DcmhaInputs call = x;
        AttentionExtras with = extras;
        with.bias = leaves[0];
        size_t i = 1;
        for_each_tensor([&](const AttentionRole&, Tensor& t) { t = leaves[i++]; }, call);
        return attention_reference(call, with);
      },
      inputs);
}

}  // namespace

std::vector<QueryBlock> length_blocks(const char* op, const DcmhaInputs& x, const std::vector<int64_t>& key_lengths) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1);
  check(std::ssize(key_lengths) == B, op,
        [&] { return str("needs one key length for each of ", B, " samples, got ", key_lengths.size()); });
  std::vector<QueryBlock> blocks;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t keys = key_lengths[static_cast<size_t>(b)];
    check(keys >= 0 && keys <= S, op,
          [&] { return str("the key length of sample ", b, " is ", keys, ", expected 0 to ", S); });
    if (!blocks.empty() && blocks.back().keys == keys)
      ++blocks.back().samples;
    else
      blocks.push_back({b, 1, 0, T, 0, keys});
  }
  return blocks;
}

Tensor attention_reference(const DcmhaInputs& x, const std::vector<QueryBlock>& documents,
                           const AttentionExtras& extras, bool compute_again) {
  std::vector<Tensor> samples, parts;  // (1, T, N, d), and the documents of one of them
  for (size_t i = 0; i < documents.size(); ++i) {
    const DcmhaInputs part = recorded_part(x, documents[i]);
    const AttentionExtras its_extras = recorded_part(extras, documents[i], i);
    parts.push_back(compute_again ? computed_again(part, its_extras) : attention_reference(part, its_extras));
    if (i + 1 < documents.size() && documents[i + 1].b0 == documents[i].b0) continue;
    samples.push_back(concat(parts, 1));
    parts.clear();
  }
  return concat(samples, 0);
}

std::vector<QueryBlock> document_blocks(const char* op, const DcmhaInputs& x, const std::vector<Document>& documents) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1), offset = x.mask.offset;
  std::vector<QueryBlock> blocks;
  int64_t sample = 0, row = 0;  // the next query row without a document
  for (const Document& d : documents) {
    const int64_t t0 = std::clamp<int64_t>(d.begin - offset, 0, T), t1 = std::clamp<int64_t>(d.end - offset, 0, T);
    const int64_t last = x.mask.causal ? std::min(d.end, t1 + offset) : d.end;  // keys from there on are masked
    const int64_t s0 = std::clamp<int64_t>(d.begin, 0, S), s1 = std::clamp<int64_t>(last, 0, S);
    if (t0 >= t1) continue;
    check(d.sample == sample && t0 == row && s0 < s1, op, [&] {
      return str("the documents must contain every query row, in order: expected one with row ", row, " of sample ",
                 sample, " and some of the ", S, " keys, got [", d.begin, ", ", d.end, ") of sample ", d.sample);
    });
    blocks.push_back({d.sample, 1, t0, t1 - t0, s0, s1 - s0});
    row = t1;
    if (row == T) row = 0, ++sample;
  }
  check(T == 0 || sample == B, op, [&] {
    return str("the documents must contain every query row: none contains row ", row, " of sample ", sample);
  });
  return blocks;
}

std::vector<Document> documents_of(const Tensor& positions) {
  check(positions.rank() == 2, "documents_of",
        [&] { return str("positions must be (B, T), got ", positions.shape()); });
  const std::vector<int64_t> place = positions.to_vector<int64_t>();
  const int64_t B = positions.dim(0), T = positions.dim(1);
  std::vector<Document> documents;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < T; ++t) {
      const int64_t p = place[static_cast<size_t>(b * T + t)];
      check(p == 0 || (t > 0 && p == place[static_cast<size_t>(b * T + t - 1)] + 1), ErrorKind::input, [&] {
        return str("bad positions of documents at sample ", b, ", token ", t,
                   ": expected 0 where a document begins, else one more than the value before, found ", p);
      });
      if (p == 0) documents.push_back({b, t, t + 1});
      documents.back().end = t + 1;
    }
  }
  return documents;
}

std::vector<Document> counted_from(std::vector<Document> documents, int64_t first) {
  for (Document& d : documents) d.begin -= first, d.end -= first;
  return documents;
}

}  // namespace braid
