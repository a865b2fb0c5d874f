// Properties of DCMHA on every implementation: the invariants of the published attention, each with the
// implementation that is chosen automatically and with the reference. All in f64.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/gradcheck.h"
#include "tests/nn/attention/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(attention_invariants)

BOOST_AUTO_TEST_CASE(without_dynamic_weights_it_is_plain_attention) {
  for (AttentionImpl impl : kImpls) {
    for (int64_t groups : {1, 2}) {
      nn::AttentionOptions o = options_of(impl);
      o.window = W;
      o.composition_options.groups = groups;
      nn::Attention composed = make(o);
      o.compose = false;
      nn::Attention plain = make(o);
      parameter(composed, "dyn_w_proj.qkw").fill(0);  // down factors are 0 / sqrt(eps): 0, not NaN
      parameter(composed, "dyn_w_proj.dd").fill(0);
      const Tensor x = randn({B, 11, D}, {4, 77}, DType::f64);
      BOOST_TEST(is_close(composed(x, {.rope = rope()}), plain(x, {.rope = rope()}), 1e-14));
    }
  }
}

// One process and many choose the op here: the plain one has the bits of dcmha without mixings, and its own name.
BOOST_AUTO_TEST_CASE(without_mixings_the_plain_op_attends) {
  const auto drawn = [](uint64_t stream) { return randn({B, 11, N, d}, {4, stream}, DType::f64); };
  nn::AttentionOperands x{drawn(1), drawn(2), drawn(3), {}, {}};
  const DcmhaOptions options{{.mask = {.window = W}}};
  BOOST_TEST(is_close(nn::attend(x, options), dcmha(x.q, x.k, x.v, {}, {}, options), 0));
  x.v = randn({B, 7, N, d}, {4, 3}, DType::f64);
  BOOST_TEST(throws_with([&] { nn::attend(x, options); }, "[scaled_dot_product_attention] values must have shape"));
  x.post.q_gate = randn({B, 11, 1, N}, {4, 4}, DType::f64);
  BOOST_TEST(throws_with([&] { nn::attend(x, options); }, "[dcmha] values must have shape"));
}

BOOST_AUTO_TEST_CASE(saturated_gates_multiply) {
  // Channel 0 of x is 10 everywhere, its weights to the gates are 0 or 10: gates are 0 or tanh(100) = 1.
  Tensor x = randn({B, 11, D}, {4, 77}, DType::f64);
  x.sliced(2, 0, 1).fill(10);
  const auto gated = [&](AttentionImpl impl, const std::vector<int64_t>& branches) {
    nn::AttentionOptions o = options_of(impl);
    o.qk_norm = false;
    nn::Attention a = make(o);
    parameter(a, "dyn_w_proj.qkw").fill(0);
    Tensor dd = parameter(a, "dyn_w_proj.dd");  // (D, 1, 4 N)
    dd.fill(0);
    for (int64_t c : branches) dd.sliced(0, 0, 1).sliced(2, c * N, (c + 1) * N).fill(10);
    return a(x, {.rope = rope()});
  };
  const auto plain = [&](AttentionImpl impl, double scores, double output) {
    nn::AttentionOptions o = options_of(impl);
    o.qk_norm = o.compose = false;
    nn::Attention a = make(o);
    multiply(parameter(a, "wqkv.weight").sliced(0, 0, N * d), scores);
    return scale(a(x, {.rope = rope()}), output);
  };
  for (AttentionImpl impl : kImpls) {
    BOOST_TEST(is_close(gated(impl, {0, 1}), plain(impl, 3, 1), 1e-13));
    BOOST_TEST(is_close(gated(impl, {0}), plain(impl, 2, 1), 1e-13));
    BOOST_TEST(is_close(gated(impl, {1}), plain(impl, 2, 1), 1e-13));
    BOOST_TEST(is_close(gated(impl, {2, 3}), plain(impl, 1, 3), 1e-13));
    BOOST_TEST(is_close(gated(impl, {0, 3}), plain(impl, 2, 2), 1e-13));
    BOOST_TEST(!is_close(gated(impl, {0}), plain(impl, 3, 1), 1e-3));
  }
}

BOOST_AUTO_TEST_CASE(the_reading_factor_is_normalised_and_the_writing_one_is_linear) {
  const Tensor x = randn({B, 11, D}, {4, 77}, DType::f64);
  for (AttentionImpl impl : kImpls) {
    const auto scaled = [&](double reading, double writing, bool pre) {
      nn::AttentionOptions o = options_of(impl);
      o.composition_options.pre = pre;
      nn::Attention a = make(o);
      Tensor qkw = parameter(a, "dyn_w_proj.qkw");  // (1, C, K, 2R, M)
      multiply(qkw.sliced(3, 0, 2), reading);
      multiply(qkw.sliced(3, 2, 4), writing);
      parameter(a, "dyn_w_proj.dd").fill(0);
      return a(x, {.rope = rope()});
    };
    BOOST_TEST(is_close(scaled(1e5, 1, true), scaled(1e3, 1, true), 1e-8));
    BOOST_TEST(!is_close(scaled(1e3, 1, true), scaled(1e3, 2, true), 1e-3));
    // After the softmax everything is linear in the writing factor.
    const Tensor none = scaled(1, 0, false), one = sub(scaled(1, 1, false), none),
                 three = sub(scaled(1, 3, false), none);
    BOOST_TEST(!is_close(add(none, one), none, 1e-3));
    BOOST_TEST(is_close(three, scale(one, 3), 1e-12));
  }
}

BOOST_AUTO_TEST_CASE(the_order_of_heads_does_not_matter) {
  const std::vector<int64_t> order = {2, 0, 3, 1};
  // `x` viewed as (before, N, after) along the axis that holds heads.
  const auto permute_heads = [&](Tensor x, int64_t before, int64_t after) {
    const Tensor old = x.clone().reshaped({before, N, after});
    Tensor view = x.reshaped({before, N, after});
    for (int64_t n = 0; n < N; ++n)
      view.sliced(1, n, n + 1).copy_(old.sliced(1, order[static_cast<size_t>(n)], order[static_cast<size_t>(n)] + 1));
  };
  const Tensor x = randn({B, 11, D}, {4, 77}, DType::f64);
  for (AttentionImpl impl : kImpls) {
    nn::AttentionOptions o = options_of(impl);
    o.window = W;
    o.composition_options.static_term = true;
    nn::Attention original = make(o), a = make(o);
    permute_heads(parameter(a, "wqkv.weight"), 3, d * D);
    permute_heads(parameter(a, "wo.weight"), D, d);
    BOOST_TEST(!equal_up_to_rounding(a(x, {.rope = rope()}),
                                     original(x, {.rope = rope()})));  // the dynamic weights still know the old order
    permute_heads(parameter(a, "dyn_w_proj.qkw"), 4 * 4 * N * 4, 1);
    permute_heads(parameter(a, "dyn_w_proj.dd"), D * 4, 1);
    for (const char* base : {"dyn_w_proj.pre_proj.w", "dyn_w_proj.post_proj.w"}) {
      permute_heads(parameter(a, base), 1, N);
      permute_heads(parameter(a, base), N, 1);
    }
    BOOST_TEST(is_close(a(x, {.rope = rope()}), original(x, {.rope = rope()}), 1e-13));
  }
}

BOOST_AUTO_TEST_CASE(a_token_acts_on_the_rows_that_attend_to_it_and_on_no_other) {
  constexpr int64_t T = 19, p = 6;
  const Tensor x = randn({B, T, D}, {4, 77}, DType::f64);
  Tensor changed = x.clone();
  changed.sliced(1, p, p + 1).copy_(randn({B, 1, D}, {5, 77}, DType::f64));
  for (AttentionImpl impl : kImpls) {
    for (int64_t window : {int64_t{0}, W, W + 1}) {  // none; profiles J and H-inf; T1 and H-train
      nn::AttentionOptions o = options_of(impl);
      o.window = window;
      const nn::Attention a = make(o);
      const Tensor before = a(x, {.rope = rope()}), after = a(changed, {.rope = rope()});
      for (int64_t i = 0; i < T; ++i) {
        const bool unmasked = i >= p && (window == 0 || i < p + window);
        BOOST_TEST(equal_up_to_rounding(row(before, i), row(after, i)) == !unmasked,
                   "window " << window << " row " << i);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(key_side_weights_act_on_the_queries_that_see_their_key) {
  // Every query has several unmasked keys: with one alone its probability would be 1 whatever the weights.
  constexpr int64_t T = 13, offset = 2, S = T + offset, j = 4;
  for (AttentionImpl impl : kImpls) {
    for (int64_t window : {int64_t{0}, W}) {
      const Inputs x = inputs(T, S);
      const Tensor before = run(x, on(impl, window, offset));
      for (int what = 0; what < 6; ++what) {
        Inputs y = x;
        HeadMixing& c = what < 3 ? y.pre : y.post;
        Tensor& weight = what % 3 == 0 ? c.k_down : what % 3 == 1 ? c.k_up : c.k_gate;
        weight = weight.clone();
        multiply(weight.sliced(1, j, j + 1), -2);
        const Tensor after = run(y, on(impl, window, offset));
        for (int64_t i = 0; i < T; ++i) {
          const int64_t position = i + offset;
          const bool unmasked = position >= j && (window == 0 || position < j + window);
          BOOST_TEST(equal_up_to_rounding(row(before, i), row(after, i)) == !unmasked,
                     "window " << window << " weight " << what << " row " << i);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(merged_matrices_with_the_identity_inside_decode_the_same) {
  // One token against S cached keys as the published code does it: per pair one N x N matrix, the sum of the query's
  // matrix and of the cached matrix of the key, which holds the identity and the static term.
  constexpr int64_t S = 9;
  const Inputs x = inputs(1, S);
  const auto at = [](const Tensor& t, std::initializer_list<int64_t> index) {
    Tensor part = t;
    for (int64_t i : index) part = part.sliced(0, i, i + 1).squeezed(0);
    return part.item();
  };
  std::vector<double> want;
  for (int64_t b = 0; b < B; ++b) {
    const auto matrix = [&](const HeadMixing& c, int64_t j, int64_t m, int64_t n) {
      double query = m == n ? at(c.q_gate, {b, 0, 0, n}) : 0, key = (m == n ? 1 + at(c.k_gate, {b, j, 0, n}) : 0);
      key += at(c.base, {0, m, n});
      for (int64_t r : {0, 1}) {
        query += at(c.q_down, {b, 0, 0, r, m}) * at(c.q_up, {b, 0, 0, r, n});
        key += at(c.k_down, {b, j, 0, r, m}) * at(c.k_up, {b, j, 0, r, n});
      }
      return query + key;
    };
    const auto mixed = [&](const HeadMixing& c, const std::vector<std::vector<double>>& a) {  // a[n][j]
      std::vector<std::vector<double>> out(N, std::vector<double>(S));
      for (int64_t j = 0; j < S; ++j)
        for (int64_t m = 0; m < N; ++m)
          for (int64_t n = 0; n < N; ++n) out[size_t(n)][size_t(j)] += a[size_t(m)][size_t(j)] * matrix(c, j, m, n);
      return out;
    };
    std::vector<std::vector<double>> a(N, std::vector<double>(S));
    for (int64_t n = 0; n < N; ++n)
      for (int64_t j = 0; j < S; ++j)
        for (int64_t e = 0; e < d; ++e)
          a[size_t(n)][size_t(j)] += at(x.q, {b, 0, n, e}) * at(x.k, {b, j, n, e}) / std::sqrt(double(d));
    a = mixed(x.pre, a);
    for (std::vector<double>& scores : a) {
      double sum = 0;
      for (double& s : scores) sum += s = std::exp(s);
      for (double& s : scores) s /= sum;
    }
    a = mixed(x.post, a);
    for (int64_t n = 0; n < N; ++n)
      for (int64_t e = 0; e < d; ++e) {
        double y = 0;
        for (int64_t j = 0; j < S; ++j) y += a[size_t(n)][size_t(j)] * at(x.v, {b, j, n, e});
        want.push_back(y);
      }
  }
  for (AttentionImpl impl : kImpls) BOOST_TEST(is_close(run(x, on(impl, 0, S - 1)).to_vector<double>(), want, 1e-12));
}

BOOST_AUTO_TEST_CASE(steps_against_a_cache_equal_the_rows_of_a_full_pass) {
  constexpr int64_t T = 2 * W + 4;
  const Tensor x = randn({B, T, D}, {5, 77}, DType::f64);
  NoGrad off;
  for (AttentionImpl impl : kImpls) {
    for (int64_t window : {int64_t{0}, W}) {
      nn::AttentionOptions o = options_of(impl);
      o.window = o.decode_window = window;
      const nn::Attention a = make(o);
      const Tensor want = a(x, {.rope = rope()});
      for (int64_t prompt : {int64_t{1}, W - 1, W, W + 1, 2 * W - 1, 2 * W, 2 * W + 1}) {
        nn::LayerCache cache(T, window);
        std::vector<Tensor> got{a(x.sliced(1, 0, prompt).clone(), {.rope = rope(), .cache = &cache})};
        for (int64_t p = prompt; p < T; ++p) got.push_back(a(row(x, p), {.rope = rope(), .cache = &cache}));
        BOOST_TEST(is_close(concat(got, 1), want, 1e-12), "window " << window << " prompt " << prompt);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_length_gives_the_rows_of_a_longer_one) {
  constexpr int64_t c = 4, longest = 140;  // c: a length that divides none of the others
  const Tensor x = randn({1, longest, D}, {6, 77}, DType::f64);
  for (int64_t window : {int64_t{0}, W}) {
    nn::AttentionOptions o = options_of(AttentionImpl::reference);
    o.window = window;
    const Tensor want = make(o)(x);
    for (AttentionImpl impl : kImpls) {
      o.impl = impl;
      const nn::Attention a = make(o);
      for (int64_t T : {int64_t{1}, int64_t{2}, c, c + 1, W, W + 1, 2 * W + 1, 3 * c + 1, int64_t{31}, int64_t{64},
                        int64_t{65}, int64_t{127}, int64_t{128}, int64_t{129}, longest}) {
        const Tensor got = a(x.sliced(1, 0, T).clone());
        BOOST_TEST(is_close(got, want.sliced(1, 0, T).clone(), 1e-12), "window " << window << " T " << T);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(groups_are_independent) {
  constexpr int64_t T = 11, G = 2, M = N / G;
  const Inputs x = inputs(T, T, G);
  const auto group_of = [&](const Tensor& t, int axis, int64_t g) { return t.sliced(axis, g, g + 1).clone(); };
  const auto stage_of = [&](const HeadMixing& c, int64_t g) {
    return HeadMixing{group_of(c.base, 0, g),   group_of(c.q_down, 2, g), group_of(c.q_up, 2, g),
                      group_of(c.k_down, 2, g), group_of(c.k_up, 2, g),   group_of(c.q_gate, 2, g),
                      group_of(c.k_gate, 2, g)};
  };
  const auto heads_of = [&](const Tensor& t, int64_t g) { return t.sliced(2, g * M, (g + 1) * M).clone(); };
  const auto swapped = [&](const Tensor& t, int axis, int64_t size) {
    return concat({t.sliced(axis, size, 2 * size).clone(), t.sliced(axis, 0, size).clone()}, axis);
  };
  const auto stage_swapped = [&](const HeadMixing& c) {
    return HeadMixing{swapped(c.base, 0, 1), swapped(c.q_down, 2, 1), swapped(c.q_up, 2, 1),  swapped(c.k_down, 2, 1),
                      swapped(c.k_up, 2, 1), swapped(c.q_gate, 2, 1), swapped(c.k_gate, 2, 1)};
  };
  for (AttentionImpl impl : kImpls) {
    const Tensor all = run(x, on(impl, W, 0, G));
    std::vector<Tensor> parts;
    for (int64_t g = 0; g < G; ++g)
      parts.push_back(
          run({heads_of(x.q, g), heads_of(x.k, g), heads_of(x.v, g), stage_of(x.pre, g), stage_of(x.post, g)},
              on(impl, W)));
    BOOST_TEST(is_close(concat(parts, 2), all, 1e-13));
    // A group is independent of its place: the groups in another order give the same heads in another order.
    const Inputs other = {swapped(x.q, 2, M), swapped(x.k, 2, M), swapped(x.v, 2, M), stage_swapped(x.pre),
                          stage_swapped(x.post)};
    BOOST_TEST(is_close(run(other, on(impl, W, 0, G)), swapped(all, 2, M), 1e-13));
  }
}

BOOST_AUTO_TEST_CASE(composed_probabilities_do_not_sum_to_one) {
  Inputs x = inputs(11, 11);
  x.v.fill(1);  // the output is the sum over the keys
  for (AttentionImpl impl : kImpls) {
    BOOST_TEST(is_close(dcmha(x.q, x.k, x.v, x.pre, {}, on(impl)), full(x.q.shape(), 1, DType::f64), 1e-13));
    BOOST_TEST(!is_close(run(x, on(impl)), full(x.q.shape(), 1, DType::f64), 0.1));
  }
}

BOOST_AUTO_TEST_CASE(derivatives_of_the_whole_layer) {
  for (AttentionImpl impl : kImpls) {
    for (int variant = 0; variant < 2; ++variant) {
      nn::AttentionOptions o = options_of(impl);
      o.width = 6;
      o.heads = 2;
      o.head_dim = 4;
      o.window = variant == 0 ? 0 : 3;
      o.composition_options.static_term = variant == 1;
      o.composition_options.tanh_gelu = variant == 0;
      nn::Attention attention = make(o);
      std::vector<Tensor> leaves{randn({1, 5, 6}, {8, 77}, DType::f64)};
      for (const nn::NamedTensor& p : nn::parameters(attention)) leaves.push_back(p.value.detach().clone());
      const GradcheckResult result = gradcheck(
          [&](const std::vector<Tensor>& in) {
            nn::Attention a = attention;
            size_t next = 1;
            nn::replace_parameters(a, [&](const std::string&, const Tensor&) { return in[next++]; });
            return a(in[0], {.rope = rope()});
          },
          leaves, 2e-4);  // the norm over two heads is strongly curved
      BOOST_TEST(result.error < 1e-8, result.where);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_reach_the_query_row_and_the_key_columns) {
  constexpr int64_t T = 12, i = 7;
  for (AttentionImpl impl : kImpls) {
    Inputs x = inputs(T, T);
    for (HeadMixing* c : {&x.pre, &x.post})
      for (Tensor* t : {&c->q_down, &c->q_up, &c->q_gate, &c->k_down, &c->k_up, &c->k_gate}) require_grad(*t);
    const Tensor y = run(x, on(impl, W));
    Tensor dy = zeros(y.shape(), DType::f64);
    dy.sliced(1, i, i + 1).fill(1);  // row i alone
    backward(y, dy);
    const auto nonzero = [](const Tensor& g, int64_t at) {
      for (double value : row(g, at).to_vector<double>())
        if (value != 0) return true;
      return false;
    };
    for (const HeadMixing* c : {&x.pre, &x.post}) {
      for (const Tensor* t : {&c->q_down, &c->q_up, &c->q_gate})
        for (int64_t p = 0; p < T; ++p) BOOST_TEST(nonzero(grad(*t), p) == (p == i));
      for (const Tensor* t : {&c->k_down, &c->k_up, &c->k_gate})
        for (int64_t p = 0; p < T; ++p) BOOST_TEST(nonzero(grad(*t), p) == (p <= i && p > i - W));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_layout_of_rotated_pairs_does_not_matter) {
  // [first half | second half] against pairs written one after the other, as the published PyTorch code caches them.
  const auto interleaved = [](const Tensor& x) {
    Tensor y = empty(x.shape(), DType::f64);
    for (int64_t e = 0; e < d / 2; ++e) {
      y.sliced(3, 2 * e, 2 * e + 1).copy_(x.sliced(3, e, e + 1));
      y.sliced(3, 2 * e + 1, 2 * e + 2).copy_(x.sliced(3, e + d / 2, e + d / 2 + 1));
    }
    return y;
  };
  const Inputs x = inputs(11, 11);
  Inputs y = x;
  y.q = interleaved(rope()(x.q, 0));
  y.k = interleaved(rope()(x.k, 0));
  Inputs z = x;
  z.q = rope()(x.q, 0);
  z.k = rope()(x.k, 0);
  Inputs mixed = z;
  mixed.k = y.k;
  for (AttentionImpl impl : kImpls) {
    BOOST_TEST(is_close(run(y, on(impl, W)), run(z, on(impl, W)), 1e-13));
    BOOST_TEST(!is_close(run(mixed, on(impl, W)), run(z, on(impl, W)), 1e-3));
  }
}

BOOST_AUTO_TEST_SUITE_END()
