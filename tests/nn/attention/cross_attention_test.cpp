// Cross-attention against its formula in loops over heads, queries and keys, and by its derivatives.
#include "braid/nn/attention/cross_attention.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "tests/nn/attention/support.h"
#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cross_attention_layer)

namespace {

constexpr int64_t T = 3, S = 5, R = 2;

nn::CrossAttentionOptions cross_options() {
  nn::CrossAttentionOptions o{.width = D, .heads = N};
  nn::CompositionOptions& c = o.composition_options;
  c.static_term = true;
  c.dw1 = c.qkw = c.dd = c.base = nn::Init::normal(0.3);
  o.projection = {.bias = true, .init = nn::Init::normal(0.3)};
  return o;
}

nn::CrossAttention make_cross(const nn::CrossAttentionOptions& o) {
  nn::CrossAttention attention(o, {1, 1});
  nn::to(attention, DType::f64);
  return attention;
}

const Tensor& decoder_states() {
  static const Tensor x = randn({B, T, D}, {3, 1}, DType::f64);
  return x;
}
const Tensor& encoder_states() {
  static const Tensor h = randn({B, S, D}, {3, 2}, DType::f64);
  return h;
}

using Values = std::vector<double>;

// The formula, one number after another.
class Loops {
 public:
  Loops(const nn::CrossAttention& attention, const nn::CrossAttentionOptions& options) : o_(options) {
    for (const nn::NamedTensor& p : nn::parameters(attention)) all_[p.name] = p.value.to_vector<double>();
  }

  Values operator()() const {
    const Values x = decoder_states().to_vector<double>(), h = encoder_states().to_vector<double>();
    Values out;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t t = 0; t < T; ++t) {
        const Values row = at(x, b * T + t), q = linear("wq", row);
        std::vector<Values> scores(S), probabilities, v;
        const std::vector<Branch> own = branches("dyn_query", row, o_.composition_options.query_side);
        std::vector<std::vector<Branch>> of_keys;
        for (int64_t s = 0; s < S; ++s) {
          const Values state = at(h, b * S + s), kv = linear("wkv", state);
          of_keys.push_back(branches("dyn_key", state, o_.composition_options.key_side));
          v.emplace_back(kv.begin() + D, kv.end());
          scores[s].assign(N, 0);
          for (int64_t i = 0; i < D; ++i) scores[s][i / d] += q[i] * kv[i] / std::sqrt(double(d));
        }
        for (int64_t s = 0; s < S; ++s) scores[s] = compose(scores[s], "pre", own, of_keys[s], 0);
        for (int64_t n = 0; n < N; ++n) {
          double sum = 0;
          for (int64_t s = 0; s < S; ++s) sum += scores[s][n] = std::exp(scores[s][n]);
          for (int64_t s = 0; s < S; ++s) scores[s][n] /= sum;
        }
        Values y(D);
        for (int64_t s = 0; s < S; ++s) {
          const Values p = compose(scores[s], "post", own, of_keys[s], 1);
          for (int64_t i = 0; i < D; ++i) y[i] += p[i / d] * v[s][i];
        }
        const Values row_out = linear("wo", y);
        out.insert(out.end(), row_out.begin(), row_out.end());
      }
    }
    return out;
  }

 private:
  struct Branch {  // (R, N), (R, N), (N)
    Values down, up, gate;
  };
  static Values at(const Values& x, int64_t row) { return {x.begin() + row * D, x.begin() + (row + 1) * D}; }

  Values linear(const std::string& name, const Values& x) const {
    const Values &w = all_.at(name + ".weight"), &bias = all_.at(name + ".bias");
    Values y = bias;
    for (size_t o = 0; o < y.size(); ++o)
      for (int64_t i = 0; i < D; ++i) y[o] += w[o * D + i] * x[i];
    return y;
  }

  // The branches of the stages before and after softmax, as far as they are on.
  std::vector<Branch> branches(const std::string& module, const Values& x, bool on) const {
    std::vector<Branch> found(2);
    if (!on || !o_.compose) return found;
    const nn::CompositionOptions& options = o_.composition_options;
    const int64_t C = options.pre + options.post, K = 2 * R * N;
    int64_t c = 0;
    for (int64_t stage = 0; stage < 2; ++stage) {
      if (!(stage == 0 ? options.pre : options.post)) continue;
      const Values &dw1 = all_.at(module + ".dw1"), &qkw = all_.at(module + ".qkw"), &dd = all_.at(module + ".dd");
      Values hidden(K), w(2 * R * N), gate(N);
      for (int64_t k = 0; k < K; ++k) {
        for (int64_t i = 0; i < D; ++i) hidden[k] += x[i] * dw1[(i * C + c) * K + k];
        const double u = hidden[k];
        hidden[k] = 0.5 * u * (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
      }
      for (int64_t k = 0; k < K; ++k)
        for (int64_t j = 0; j < 2 * R * N; ++j) w[j] += hidden[k] * qkw[(c * K + k) * 2 * R * N + j];
      for (int64_t n = 0; n < N; ++n) {
        for (int64_t i = 0; i < D; ++i) gate[n] += x[i] * dd[(i * C + c) * N + n];
        gate[n] = std::tanh(gate[n]);
      }
      Branch& branch = found[stage];
      branch.up.assign(w.begin() + R * N, w.end());
      for (int64_t r = 0; r < R; ++r) {
        double squares = 0;
        for (int64_t n = 0; n < N; ++n) squares += w[r * N + n] * w[r * N + n] / N;
        for (int64_t n = 0; n < N; ++n) branch.down.push_back(w[r * N + n] / std::sqrt(squares + options.norm_eps));
      }
      branch.gate = gate;
      ++c;
    }
    return found;
  }

  Values compose(const Values& a, const std::string& stage, const std::vector<Branch>& own,
                 const std::vector<Branch>& key, size_t which) const {
    Values o = a;
    const nn::CompositionOptions& options = o_.composition_options;
    if (o_.compose && options.static_term && (which == 0 ? options.pre : options.post)) {
      const Values& base = all_.at("dyn_query." + stage + "_proj.w");
      for (int64_t n = 0; n < N; ++n)
        for (int64_t m = 0; m < N; ++m) o[n] += a[m] * base[m * N + n];
    }
    for (const Branch* branch : {&own[which], &key[which]}) {
      if (branch->gate.empty()) continue;
      for (int64_t r = 0; r < R; ++r) {
        double read = 0;
        for (int64_t m = 0; m < N; ++m) read += a[m] * branch->down[r * N + m];
        for (int64_t n = 0; n < N; ++n) o[n] += read * branch->up[r * N + n];
      }
      for (int64_t n = 0; n < N; ++n) o[n] += a[n] * branch->gate[n];
    }
    return o;
  }

  nn::CrossAttentionOptions o_;
  std::map<std::string, Values> all_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_the_formula_in_every_variant) {
  for (int variant = 0; variant < 7; ++variant) {
    nn::CrossAttentionOptions o = cross_options();
    nn::CompositionOptions& c = o.composition_options;
    if (variant == 1) o.compose = false;
    if (variant == 2) c.key_side = false;
    if (variant == 3) c.query_side = false;
    if (variant == 4) c.static_term = false;
    if (variant == 5) c.pre = false;
    if (variant == 6) c.post = false;
    for (const AttentionImpl impl : kImpls) {
      o.impl = impl;
      BOOST_TEST_CONTEXT("variant " << variant) {
        const nn::CrossAttention attention = make_cross(o);
        const Tensor y = attention(decoder_states(), attention.source(encoder_states()));
        BOOST_TEST(is_close(y, from_vector(Loops(attention, o)(), {B, T, D}), 1e-12));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(derivatives_agree_with_finite_differences) {
  const nn::CrossAttention attention = make_cross(cross_options());
  const auto value = [&](const std::vector<Tensor>& in) { return attention(in[0], attention.source(in[1])); };
  BOOST_TEST(gradcheck(value, {decoder_states(), encoder_states()}).error < 1e-7);
  check_gradient_flow(attention, value({decoder_states(), encoder_states()}));
}

BOOST_AUTO_TEST_CASE(an_identity_start_is_plain_attention_to_the_bit) {
  nn::CrossAttentionOptions o = cross_options();
  o.composition_options.identity_start = true;
  const nn::CrossAttention composed = make_cross(o);
  o.compose = false;
  const nn::CrossAttention plain = make_cross(o);
  BOOST_TEST(is_close(composed(decoder_states(), composed.source(encoder_states())),
                      plain(decoder_states(), plain.source(encoder_states())), 0));
}

BOOST_AUTO_TEST_CASE(one_query_after_another_reads_the_same_source) {
  const nn::CrossAttention attention = make_cross(cross_options());
  const NoGrad off;
  const nn::CrossAttention::Source source = attention.source(encoder_states());
  const Tensor all = attention(decoder_states(), source);
  for (int64_t t = 0; t < T; ++t) BOOST_TEST(is_close(attention(row(decoder_states(), t), source), row(all, t), 1e-13));
  BOOST_CHECK_THROW(attention(randn({B + 1, T, D}, {4, 1}, DType::f64), source), Error);
}

// Sources of unequal lengths in one batch: each sample as it is alone, whatever the padding holds.
BOOST_AUTO_TEST_CASE(padding_of_a_source_is_not_read) {
  const nn::CrossAttention attention = make_cross(cross_options());
  const NoGrad off;
  Tensor padded = encoder_states().clone();
  padded.sliced(0, 1, 2).sliced(1, 2, S).fill(1e3);
  std::vector<int64_t> lengths(static_cast<size_t>(B), S);
  lengths[1] = 2;
  const Tensor y = attention(decoder_states(), attention.source(padded, lengths));
  for (int64_t b = 0; b < B; ++b) {
    const int64_t keys = lengths[static_cast<size_t>(b)];
    const Tensor alone = attention(slice(decoder_states(), 0, b, b + 1),
                                   attention.source(slice(slice(encoder_states(), 0, b, b + 1), 1, 0, keys)));
    BOOST_TEST(is_close(y.sliced(0, b, b + 1).to_vector<double>(), alone.to_vector<double>(), 1e-12));
  }
}

BOOST_AUTO_TEST_SUITE_END()
