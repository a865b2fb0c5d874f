// The options of attention beside its mask of positions: key lengths, alignment, masks by entry, bias, dropout, a cap
// of the scores, values of another size.
#include "braid/autograd.h"
#include "tests/support/attention_loops.h"
#include "tests/support/dcmha_cases.h"
#include "tests/support/op_table.h"

namespace braid::test {

namespace {

// Kinds of entries (1 or B, 1 or N, T, S); none: nothing of that kind.
enum class EntryKind : uint8_t { none, of_heads, of_samples, of_all };

Shape entries_shape(EntryKind kind, const Shape& q, const Shape& k) {
  return {kind == EntryKind::of_heads ? 1 : q[0], kind == EntryKind::of_samples ? 1 : q[2], q[1], k[1]};
}

// Row 1 of sample 0 sees no key.
Tensor entries_for_test(const Shape& shape) {
  std::vector<uint8_t> values;
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t n = 0; n < shape[1]; ++n)
      for (int64_t t = 0; t < shape[2]; ++t)
        for (int64_t s = 0; s < shape[3]; ++s)
          values.push_back((7 * b + 5 * n + 3 * t + 2 * s) % 3 != 0 && (b > 0 || t != 1));
  return from_vector(values, shape);
}

struct MaskSizes {
  int64_t B, T, S, G, M, d, dv, R;  // R 0: no Compose
};

// A row of calls whose bias, if any, is the last input.
OpRow mask_row(std::string name, DcmhaOptions options, EntryKind attend, EntryKind bias, std::vector<MaskSizes> sizes) {
  OpRow r;
  r.name = std::move(name);
  if (bias != EntryKind::none) options.bias = zeros({1, 1, 1, 1});  // replaced by the input
  const auto with_mask = [options, attend](const Shape& q, const Shape& k) {
    DcmhaOptions of_call = options;
    if (attend != EntryKind::none) of_call.attend = entries_for_test(entries_shape(attend, q, k));
    return of_call;
  };
  r.op = [with_mask](const std::vector<Tensor>& x) {
    DcmhaOptions how = with_mask(x[0].shape(), x[1].shape());
    if (how.attend) how.attend = how.attend.to(x[0].device());
    std::vector<Tensor> tensors = x;
    if (how.bias) {
      how.bias = x.back();
      tensors.pop_back();
    }
    if (tensors.size() == 3) return scaled_dot_product_attention(x[0], x[1], x[2], how);
    const DcmhaInputs call = call_of(tensors);
    return dcmha(call.q, call.k, call.v, call.pre, call.post, how);
  };
  r.reference = [with_mask](const std::vector<Array>& in) {
    return attention_by_loops(in, with_mask(in[0].shape, in[1].shape));
  };
  for (const MaskSizes& z : sizes) {
    const int64_t N = z.G * z.M;
    std::vector<Shape> all{{z.B, z.T, N, z.d}, {z.B, z.S, N, z.d}, {z.B, z.S, N, z.dv}};
    for (int stage = 0; z.R > 0 && stage < 2; ++stage) {
      all.push_back({z.G, z.M, z.M});
      for (const int64_t positions : {z.T, z.T, z.S, z.S}) all.push_back({z.B, positions, z.G, z.R, z.M});
      for (const int64_t positions : {z.T, z.S}) all.push_back({z.B, positions, z.G, z.M});
    }
    if (bias != EntryKind::none) all.push_back(entries_shape(bias, all[0], all[1]));
    r.cases.push_back(all);
  }
  r.low = -0.8;
  r.high = 0.8;
  r.f32_tolerance = 2e-5;
  r.in_16_bit = false;  // its 16-bit error is that of its parts, each of which has a row
  return r;
}

DcmhaOptions masked_by(AttentionMask mask, int64_t groups = 1) {
  DcmhaOptions o;
  o.mask = mask;
  o.groups = groups;
  return o;
}
DcmhaOptions with_lengths(DcmhaOptions o, std::vector<int64_t> lengths, AttentionImpl impl) {
  o.key_lengths = std::move(lengths);
  o.impl = impl;
  return o;
}
DcmhaOptions with_last_keys(DcmhaOptions o) {
  o.alignment = CausalAlignment::bottom_right;
  return o;
}
DcmhaOptions in_chunks(DcmhaOptions o) {
  o.impl = AttentionImpl::chunked;
  o.chunk = 2;
  return o;
}
DcmhaOptions with_bias_after(DcmhaOptions o) {
  o.bias_place = BiasPlace::after_compose;
  return o;
}
DcmhaOptions with_dropout(DcmhaOptions o) {
  o.dropout = 0.4;
  o.dropout_key = {7, 3};
  return o;
}
DcmhaOptions with_softcap(DcmhaOptions o) {
  o.softcap = 0.3;
  return o;
}

}  // namespace

std::vector<OpRow> attention_mask_rows() {
  const AttentionMask causal, all{false, 0, 0}, window{true, 3, 0};
  using enum AttentionImpl;
  using enum EntryKind;
  const std::string plain = "scaled_dot_product_attention:";
  return {
      mask_row("dcmha:key_lengths", with_lengths(masked_by(all), {3, 5, 0}, automatic), none, none,
               {{3, 2, 5, 1, 2, 2, 2, 1}}),
      mask_row("dcmha:key_lengths_reference", with_lengths(masked_by(all), {1, 2, 2}, reference), none, none,
               {{3, 2, 2, 1, 2, 2, 2, 1}}),
      mask_row("dcmha:bottom_right_lengths", with_lengths(with_last_keys(masked_by(causal, 2)), {3, 4, 2}, automatic),
               none, none, {{3, 3, 4, 2, 2, 2, 2, 1}}),
      mask_row("dcmha:bottom_right_lengths_chunked",
               with_lengths(in_chunks(with_last_keys(masked_by(window))), {3, 5, 1}, chunked), none, none,
               {{3, 3, 5, 1, 2, 2, 2, 1}}),
      mask_row(plain + "key_lengths", with_lengths(masked_by(all), {3, 1}, automatic), none, none,
               {{2, 2, 3, 1, 2, 2, 2, 0}}),
      mask_row(plain + "bottom_right", with_last_keys(masked_by(causal)), none, none,
               {{2, 2, 5, 1, 2, 2, 2, 0}, {1, 5, 2, 1, 2, 2, 2, 0}, {0, 2, 5, 1, 2, 2, 2, 0}}),
      mask_row(plain + "bottom_right_chunked", in_chunks(with_last_keys(masked_by(window))), none, none,
               {{1, 2, 5, 1, 2, 2, 2, 0}, {1, 7, 3, 1, 1, 2, 2, 0}}),
      mask_row("dcmha:attend", masked_by(all), of_all, none, {{2, 3, 4, 1, 2, 2, 2, 1}, {1, 1, 2, 1, 2, 1, 1, 1}}),
      mask_row("dcmha:attend_samples", in_chunks(masked_by(causal)), of_samples, none, {{2, 4, 4, 1, 2, 2, 2, 1}}),
      mask_row(plain + "attend", masked_by(causal), of_heads, none,
               {{2, 3, 3, 1, 2, 2, 2, 0}, {1, 2, 3, 1, 2, 2, 2, 0}, {0, 2, 3, 1, 2, 2, 2, 0}}),
      mask_row("dcmha:bias_before", masked_by(causal, 2), none, of_heads,
               {{2, 3, 3, 2, 2, 2, 2, 1}, {1, 1, 2, 2, 1, 1, 1, 1}}),
      mask_row("dcmha:bias_after", with_bias_after(in_chunks(masked_by(all))), none, of_samples,
               {{2, 3, 4, 1, 2, 2, 2, 1}, {1, 1, 2, 1, 2, 1, 1, 1}}),
      mask_row(plain + "bias", in_chunks(masked_by(all)), none, of_all,
               {{2, 3, 4, 1, 2, 2, 2, 0}, {1, 3, 2, 1, 2, 2, 2, 0}}),
      mask_row(plain + "wide_values", masked_by(causal), none, none,
               {{2, 3, 4, 1, 2, 2, 5, 0}, {1, 3, 3, 1, 1, 4, 1, 0}}),
      mask_row("dcmha:dropout", with_dropout(in_chunks(masked_by(window, 2))), none, none, {{2, 5, 5, 2, 2, 2, 3, 1}}),
      mask_row(plain + "dropout", with_dropout(masked_by(causal)), none, none,
               {{1, 18, 18, 1, 2, 1, 1, 0}, {1, 2, 3, 1, 2, 2, 2, 0}}),
      mask_row("dcmha:softcap", with_softcap(in_chunks(masked_by(window, 2))), none, none, {{2, 5, 5, 2, 2, 2, 2, 1}}),
      mask_row("dcmha:softcap_reference", with_softcap(with_lengths(masked_by(causal), {5}, reference)), none, none,
               {{1, 3, 5, 1, 2, 2, 2, 1}}),
      mask_row(plain + "softcap", with_softcap(masked_by(causal)), none, none, {{2, 4, 4, 1, 3, 2, 2, 0}}),
      mask_row("dcmha:everything",
               with_softcap(with_dropout(with_lengths(with_last_keys(masked_by(window)), {4, 2}, automatic))), of_all,
               of_all, {{2, 3, 4, 1, 2, 2, 3, 1}}),
  };
}

}  // namespace braid::test
