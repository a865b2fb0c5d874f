// DCMHA against the loops of its definition.
#include <cmath>

#include "braid/autograd/ops.h"
#include "tests/support/attention_loops.h"
#include "tests/support/dcmha_cases.h"
#include "tests/support/op_table.h"

namespace braid::test {

namespace {

struct Sizes {
  int64_t B, T, S, G, M, R, d;
};

// The inputs in order: q, k, v, then base, q_down, q_up, k_down, k_up, q_gate, k_gate of pre and of post.
std::vector<Shape> shapes(const Sizes& z) {
  int64_t N = z.G * z.M;
  std::vector<Shape> all{{z.B, z.T, N, z.d}, {z.B, z.S, N, z.d}, {z.B, z.S, N, z.d}};
  for (int stage = 0; stage < 2; ++stage) {
    all.insert(all.end(), {Shape{z.G, z.M, z.M}, Shape{z.B, z.T, z.G, z.R, z.M}, Shape{z.B, z.T, z.G, z.R, z.M},
                           Shape{z.B, z.S, z.G, z.R, z.M}, Shape{z.B, z.S, z.G, z.R, z.M}, Shape{z.B, z.T, z.G, z.M},
                           Shape{z.B, z.S, z.G, z.M}});
  }
  return all;
}

OpRow row(std::string name, DcmhaOptions options, std::vector<Sizes> sizes) {
  OpRow r;
  r.name = std::move(name);
  r.op = [options](const std::vector<Tensor>& x) {
    const DcmhaInputs call = call_of(x);
    return dcmha(call.q, call.k, call.v, call.pre, call.post, options);
  };
  r.reference = [options](const std::vector<Array>& in) { return attention_by_loops(in, options); };
  for (const Sizes& z : sizes) r.cases.push_back(shapes(z));
  r.low = -0.8;
  r.high = 0.8;
  r.f32_tolerance = 2e-5;
  r.in_16_bit = false;  // its 16-bit error is that of its parts, each of which has a row
  return r;
}

OpRow plain_row(std::string name, SdpaOptions options, std::vector<Sizes> sizes) {
  OpRow r = row(std::move(name), {options, 1}, {});
  r.op = [options](const std::vector<Tensor>& x) { return scaled_dot_product_attention(x[0], x[1], x[2], options); };
  for (const Sizes& z : sizes) r.cases.push_back({{z.B, z.T, z.M, z.d}, {z.B, z.S, z.M, z.d}, {z.B, z.S, z.M, z.d}});
  return r;
}

// All factors of a token, group and branch behind each other, (B, T, G, C, (2R + 1) M).
Tensor joined(const std::vector<ComposeFactors>& branches) {
  std::vector<Tensor> all;
  for (const ComposeFactors& f : branches) {
    const Tensor gate = unsqueeze(f.gate, 3);
    const Tensor factors = f.down ? concat({f.down, f.up, gate}, 3) : gate;  // (B, T, G, 2R + 1, M)
    all.push_back(reshape(factors, {factors.dim(0), factors.dim(1), factors.dim(2), factors.dim(3) * factors.dim(4)}));
  }
  return stack(all, 3);
}

constexpr double kFactorsEps = 0.05;  // large, so that a wrong place for it would show

// The gates (B, T, G, C, M), and where R > 0 before them w (G, C, B, T, 2R, M).
Array factors_by_loops(const std::vector<Array>& in) {
  const Array& gates = in.back();
  const Shape& s = gates.shape;
  const int64_t M = s[4], both = in.size() > 1 ? in[0].shape[4] : 0;
  Array y{{s[0], s[1], s[2], s[3], (both + 1) * M}, {}};
  for (int64_t i = 0; i < s[0] * s[1] * s[2] * s[3]; ++i) {
    const int64_t c = i % s[3], g = i / s[3] % s[2], t = i / (s[3] * s[2]) % s[1], b = i / (s[3] * s[2] * s[1]);
    for (int64_t f = 0; f < both; ++f) {
      double squares = 0;
      for (int64_t m = 0; m < M; ++m) squares += std::pow(element(in[0], {g, c, b, t, f, m}), 2);
      const double scale = f < both / 2 ? 1 / std::sqrt(squares / static_cast<double>(M) + kFactorsEps) : 1;
      for (int64_t m = 0; m < M; ++m) y.values.push_back(element(in[0], {g, c, b, t, f, m}) * scale);
    }
    for (int64_t m = 0; m < M; ++m) y.values.push_back(std::tanh(element(gates, {b, t, g, c, m})));
  }
  return y;
}

}  // namespace

std::vector<OpRow> attention_rows() {
  AttentionMask causal, window{true, 3, 0}, later{true, 4, 2}, all{false, 0, 0};
  return {
      row("dcmha:reference", {{.mask = causal, .impl = AttentionImpl::reference}, 1},
          {{2, 4, 4, 1, 3, 2, 2}, {1, 1, 1, 1, 1, 1, 1}, {0, 3, 3, 1, 2, 2, 2}}),
      row("dcmha:groups_window", {{.mask = window, .impl = AttentionImpl::reference}, 2}, {{1, 6, 6, 2, 2, 2, 2}}),
      row("dcmha:offset", {{.mask = later, .impl = AttentionImpl::reference}, 1}, {{1, 3, 5, 1, 2, 2, 3}}),
      row("dcmha:all", {{.mask = all, .impl = AttentionImpl::reference}, 1}, {{1, 3, 5, 1, 2, 2, 2}}),
      row("dcmha:fused", {{.mask = causal, .impl = AttentionImpl::fused}, 1},
          {{2, 4, 4, 1, 3, 2, 2}, {1, 1, 1, 1, 1, 1, 1}, {0, 3, 3, 1, 2, 2, 2}, {1, 9, 9, 1, 2, 1, 5}}),
      row("dcmha:fused_groups_window", {{.mask = window, .impl = AttentionImpl::fused}, 2},
          {{1, 6, 6, 2, 2, 3, 2}, {2, 11, 11, 2, 1, 1, 3}}),
      row("dcmha:fused_offset", {{.mask = later, .impl = AttentionImpl::fused}, 1}, {{1, 3, 5, 1, 2, 2, 3}}),
      row("dcmha:fused_all", {{.mask = all, .impl = AttentionImpl::fused}, 1}, {{1, 3, 5, 1, 2, 2, 2}}),
      row("dcmha:chunked", {{.mask = causal, .impl = AttentionImpl::chunked, .chunk = 2}, 1},
          {{1, 5, 5, 1, 2, 2, 2}, {2, 4, 4, 1, 3, 1, 2}}),
      row("dcmha:chunked_window", {{.mask = window, .impl = AttentionImpl::chunked, .chunk = 2}, 2},
          {{1, 7, 7, 2, 2, 2, 2}}),
      row("dcmha:chunked_all", {{.mask = all, .impl = AttentionImpl::chunked, .chunk = 2}, 1}, {{1, 3, 5, 1, 2, 2, 2}}),
      plain_row("scaled_dot_product_attention", {.mask = causal},
                {{2, 4, 4, 1, 3, 0, 2}, {1, 1, 1, 1, 1, 0, 1}, {0, 3, 3, 1, 2, 0, 2}, {1, 9, 9, 1, 2, 0, 5}}),
      plain_row("scaled_dot_product_attention:window", {.mask = window}, {{1, 6, 6, 1, 4, 0, 2}}),
      plain_row("scaled_dot_product_attention:offset", {.mask = later}, {{1, 3, 5, 1, 2, 0, 3}}),
      plain_row("scaled_dot_product_attention:all", {.mask = all}, {{1, 3, 5, 1, 2, 0, 2}}),
      plain_row("scaled_dot_product_attention:reference", {.mask = causal, .impl = AttentionImpl::reference},
                {{2, 4, 4, 1, 3, 0, 2}}),
      plain_row("scaled_dot_product_attention:chunked", {.mask = causal, .impl = AttentionImpl::chunked, .chunk = 2},
                {{1, 5, 5, 1, 2, 0, 2}}),
      {.name = "compose_factors",
       .op = [](const auto& in) { return joined(compose_factors(in[0], in[1], kFactorsEps)); },
       .reference = factors_by_loops,
       .cases = {{{1, 4, 2, 3, 4, 3}, {2, 3, 1, 4, 3}},
                 {{2, 2, 1, 2, 2, 16}, {1, 2, 2, 2, 16}},
                 {{1, 4, 1, 2, 4, 4}, {1, 2, 1, 4, 4}},
                 {{1, 1, 1, 3, 2, 8}, {1, 3, 1, 1, 8}},
                 {{1, 1, 1, 2, 2, 32}, {1, 2, 1, 1, 32}},
                 {{1, 1, 0, 3, 4, 2}, {0, 3, 1, 1, 2}}}},
      {.name = "compose_factors:gates",
       .op = [](const auto& in) { return joined(compose_factors({}, in[0], kFactorsEps)); },
       .reference = factors_by_loops,
       .cases = {{{2, 3, 1, 4, 3}}, {{1, 2, 3, 1, 5}}}},
      {.name = "compose_factors:some",  // a factor without a gradient has none of zeros either
       .op =
           [](const auto& in) {
             const std::vector<ComposeFactors> f = compose_factors(in[0], in[1], kFactorsEps);
             return concat({f[0].down, f[1].up, unsqueeze(f[1].gate, 3)}, 3);
           },
       .reference =
           [](const auto& in) {
             const Array every = factors_by_loops(in);  // (B, T, G, 2, 3 M) with R = 1
             const Shape& s = every.shape;
             Array y{{s[0], s[1], s[2], 3, s[4] / 3}, {}};
             const int64_t M = y.shape[4];
             for (int64_t i = 0; i < numel(s); ++i)
               if (i % (6 * M) < M || i % (6 * M) >= 4 * M) y.values.push_back(every.values[static_cast<size_t>(i)]);
             return y;
           },
       .cases = {{{1, 2, 2, 3, 2, 4}, {2, 3, 1, 2, 4}}}},
  };
}

}  // namespace braid::test
