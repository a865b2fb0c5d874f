// The parts of an attention call: documents of packed sequences, samples with fewer keys, blocks of query rows; and the
// definition on each of them.
#include "braid/autograd/ops/attention_parts.h"

#include <algorithm>

#include "braid/autograd/ops.h"

namespace braid::attention {

namespace {

// The call on one part, as recorded slices.
DcmhaInputs recorded_part(DcmhaInputs x, const CallPart& part) {
  using enum AttentionRole::Positions;
  for_each_tensor(
      [&](const AttentionRole& role, Tensor& t) {
        if (!t || role.positions == none) return;
        const bool rows = role.positions == queries;
        const int64_t begin = rows ? part.t0 : part.s0, count = rows ? part.rows : part.keys;
        t = slice(slice(t, 0, part.b0, part.b0 + part.samples), 1, begin, begin + count);
      },
      x);
  x.mask.offset += part.t0 - part.s0 + part.shift;
  return x;
}

// The same of entries (1 or B, 1 or N, T, S).
Tensor recorded_entries(const Tensor& x, const QueryBlock& block) {
  if (!x) return x;
  const Tensor samples = x.dim(0) == 1 ? x : slice(x, 0, block.b0, block.b0 + block.samples);
  return slice(slice(samples, 2, block.t0, block.t0 + block.rows), 3, block.s0, block.s0 + block.keys);
}

// Rows are drawn together in tiles of this many.
constexpr int64_t kDropoutRows = 16;

// The entries of P' that become 0, (samples, N, rows, keys) u8. With row tile i = t / 16 of sample b, entry (n, t, s)
// is element (s, n, t mod 16) of dropout() with the key child(child(key, b), i): a function of the key, N, b, n, t and
// s.
Tensor dropped_entries(const AttentionExtras& extras, int64_t N, Device device, const QueryBlock& block) {
  const NoGrad off;
  Tensor dropped = empty({block.samples, N, block.rows, block.keys}, DType::u8, device);
  if (dropped.numel() == 0) return dropped;
  const int64_t t1 = block.t0 + block.rows, s1 = block.s0 + block.keys;
  const Tensor one = ones({1, 1, 1}, DType::f32, device).expanded({s1, N, kDropoutRows});
  for (int64_t b = 0; b < block.samples; ++b) {
    const RandomKey of_sample = child(extras.dropout_key, block.b0 + b);
    for (int64_t i = block.t0 / kDropoutRows; i * kDropoutRows < t1; ++i) {
      const Tensor tile = eq(dropout(one, extras.dropout, child(of_sample, i)), 0.0);  // (s1, N, 16)
      const int64_t begin = std::max(block.t0, i * kDropoutRows), end = std::min(t1, (i + 1) * kDropoutRows);
      const Tensor rows =
          tile.sliced(0, block.s0, s1).sliced(2, begin - i * kDropoutRows, end - i * kDropoutRows).permuted({1, 2, 0});
      dropped.sliced(0, b, b + 1).squeezed(0).sliced(1, begin - block.t0, end - block.t0).copy_(rows);
    }
  }
  return dropped;
}

std::vector<CallPart> parts_of_lengths(const char* op, const DcmhaInputs& x, const SdpaOptions& options) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1);
  check(std::ssize(options.key_lengths) == B, op,
        [&] { return str("needs one key length for each of ", B, " samples, got ", options.key_lengths.size()); });
  std::vector<CallPart> parts;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t keys = options.key_lengths[static_cast<size_t>(b)];
    check(keys >= 0 && keys <= S, op,
          [&] { return str("the key length of sample ", b, " is ", keys, ", expected 0 to ", S); });
    const int64_t shift = options.alignment == CausalAlignment::bottom_right ? keys - T : 0;
    if (!parts.empty() && parts.back().keys == keys)
      ++parts.back().samples;
    else
      parts.push_back({{b, 1, 0, T, 0, keys}, shift});
  }
  return parts;
}

// The query rows of each document, and the keys that they may attend to; documents without a query row here are left
// out. Throws when some query row is in no document, or the documents are not in order.
std::vector<CallPart> parts_of_documents(const char* op, const DcmhaInputs& x, const std::vector<Document>& documents) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1), offset = x.mask.offset;
  std::vector<CallPart> parts;
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
    parts.push_back({{d.sample, 1, t0, t1 - t0, s0, s1 - s0}, 0});
    row = t1;
    if (row == T) row = 0, ++sample;
  }
  check(T == 0 || sample == B, op, [&] {
    return str("the documents must contain every query row: none contains row ", row, " of sample ", sample);
  });
  return parts;
}

}  // namespace

std::vector<CallPart> parts_of(const char* op, const DcmhaInputs& x, const SdpaOptions& options) {
  if (options.documents) return parts_of_documents(op, x, *options.documents);
  if (!options.key_lengths.empty()) return parts_of_lengths(op, x, options);
  return {};
}

DcmhaInputs part_of(const DcmhaInputs& x, const CallPart& part) {
  DcmhaInputs inside = x;
  for_each_tensor([&](const AttentionRole& role, Tensor& t) { t = part.part(t, role.positions); }, inside);
  inside.mask.offset += part.t0 - part.s0 + part.shift;
  return inside;
}

AttentionExtras part_of(const AttentionExtras& extras, const DcmhaInputs& x, const QueryBlock& block) {
  AttentionExtras inside = extras;
  inside.attend = recorded_entries(extras.attend, block);
  inside.bias = recorded_entries(extras.bias, block);
  if (extras.dropout > 0) inside.dropped = dropped_entries(extras, x.q.dim(2), x.q.device(), block);
  return inside;
}

Tensor entries_of(const Tensor& x, const QueryBlock& block) {
  const Tensor samples = x.dim(0) == 1 ? x : x.sliced(0, block.b0, block.b0 + block.samples);
  return samples.sliced(2, block.t0, block.t0 + block.rows).sliced(3, block.s0, block.s0 + block.keys);
}

Tensor attention_reference(const DcmhaInputs& x, const std::vector<CallPart>& parts, const AttentionExtras& extras) {
  const QueryBlock whole = {0, x.q.dim(0), 0, x.q.dim(1), 0, x.k.dim(1)};
  if (parts.empty()) return braid::attention_reference(x, extras.empty() ? extras : part_of(extras, x, whole));
  std::vector<Tensor> samples, of_sample;  // (1, T, N, dv), and the documents of one of them
  for (size_t i = 0; i < parts.size(); ++i) {
    of_sample.push_back(braid::attention_reference(recorded_part(x, parts[i]), part_of(extras, x, parts[i])));
    if (i + 1 < parts.size() && parts[i + 1].b0 == parts[i].b0) continue;
    samples.push_back(concat(of_sample, 1));
    of_sample.clear();
  }
  return concat(samples, 0);
}

}  // namespace braid::attention
