// Key lengths, masks by entry, bias, dropout and values of another size: against each sample alone, plain loops, finite
// differences.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "braid/autograd.h"
#include "tests/support/attention_loops.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(attention_masks)

namespace {

constexpr int64_t B = 3, T = 5, S = 7, N = 4, d = 6, G = 2, M = N / G, R = 2;

Tensor random(const Shape& shape, uint64_t key) { return scale(randn(shape, RandomKey{key}, DType::f64), 0.4); }

// q, k, v, and every term of both mixings.
struct Inputs {
  std::vector<Tensor> all{random({B, T, N, d}, 1), random({B, S, N, d}, 2), random({B, S, N, d}, 3)};
  Inputs() {
    for (uint64_t stage = 0; stage < 2; ++stage) {
      const auto key = [&](uint64_t i) { return 10 + 10 * stage + i; };
      all.push_back(random({G, M, M}, key(0)));
      for (const uint64_t i : {1, 2}) all.push_back(random({B, T, G, R, M}, key(i)));
      for (const uint64_t i : {3, 4}) all.push_back(random({B, S, G, R, M}, key(i)));
      all.push_back(random({B, T, G, M}, key(5)));
      all.push_back(random({B, S, G, M}, key(6)));
    }
  }
};

HeadMixing mixing(const std::vector<Tensor>& in, size_t at) {
  return {in[at], in[at + 1], in[at + 2], in[at + 3], in[at + 4], in[at + 5], in[at + 6]};
}
Tensor attend(const std::vector<Tensor>& in, DcmhaOptions options) {
  options.groups = G;
  return dcmha(in[0], in[1], in[2], mixing(in, 3), mixing(in, 10), options);
}

// The same inputs with what belongs to sample b alone, and its first `keys` keys.
std::vector<Tensor> sample(const std::vector<Tensor>& in, int64_t b, int64_t keys) {
  std::vector<Tensor> part;
  for (const Tensor& x : in) {
    if (x.dim(0) != B) {
      part.push_back(x);
      continue;
    }
    const Tensor one = slice(x, 0, b, b + 1);
    part.push_back(x.dim(1) == S ? slice(one, 1, 0, keys) : one);
  }
  return part;
}

std::vector<Tensor> leaves_of(const std::vector<Tensor>& in) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : in) {
    leaves.push_back(x.detach().clone());
    require_grad(leaves.back());
  }
  return leaves;
}

const std::vector<int64_t> kLengths{7, 3, 3};

}  // namespace

BOOST_AUTO_TEST_CASE(a_sample_with_fewer_keys_gives_what_it_gives_alone) {
  const Inputs inputs;
  const Tensor dy = random({B, T, N, d}, 99);
  for (const bool causal : {false, true}) {
    for (const AttentionImpl impl :
         {AttentionImpl::automatic, AttentionImpl::fused, AttentionImpl::chunked, AttentionImpl::reference}) {
      DcmhaOptions options;
      options.mask = {causal, 0, 2};
      options.impl = impl;
      // What lies behind the keys is not read.
      std::vector<Tensor> padded = inputs.all;
      for (Tensor& x : padded) {
        if (x.dim(1) != S) continue;
        x = x.clone();
        x.sliced(0, 1, 3).sliced(1, 3, S).fill(std::nan(""));
      }
      std::vector<Tensor> leaves = leaves_of(padded);
      options.key_lengths = kLengths;
      const Tensor y = attend(leaves, options);
      backward(y, dy);
      options.key_lengths = {};
      BOOST_TEST_CONTEXT("causal " << causal << ", implementation " << static_cast<int>(impl)) {
        for (int64_t b = 0; b < B; ++b) {
          std::vector<Tensor> alone = leaves_of(sample(inputs.all, b, kLengths[static_cast<size_t>(b)]));
          const Tensor want = attend(alone, options);
          BOOST_TEST(is_close(y.detach().sliced(0, b, b + 1).to_vector<double>(), want.to_vector<double>(), 1e-13));
          backward(want, dy.sliced(0, b, b + 1));
          for (size_t i = 0; i < leaves.size(); ++i) {
            if (leaves[i].dim(0) != B) continue;  // the static term is shared
            const Tensor g = grad(leaves[i]).sliced(0, b, b + 1);
            const int64_t keys = alone[i].dim(1);
            BOOST_TEST(is_close(g.sliced(1, 0, keys).to_vector<double>(), grad(alone[i]).to_vector<double>(), 1e-12));
            for (const double x : g.sliced(1, keys, g.dim(1)).to_vector<double>()) BOOST_TEST(x == 0);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_sample_without_keys_gives_zeros_and_no_gradients) {
  const Inputs inputs;
  for (const AttentionImpl impl : {AttentionImpl::automatic, AttentionImpl::chunked, AttentionImpl::reference}) {
    std::vector<Tensor> leaves = leaves_of(inputs.all);
    DcmhaOptions options;
    options.mask = {false, 0, 0};
    options.impl = impl;
    options.key_lengths = {0, 7, 0};
    const Tensor y = attend(leaves, options);
    backward(y, random({B, T, N, d}, 98));
    for (const int64_t b : {0, 2}) {
      for (const double x : y.detach().sliced(0, b, b + 1).to_vector<double>()) BOOST_TEST(x == 0);
      for (size_t i = 0; i < 3; ++i)
        for (const double x : grad(leaves[i]).sliced(0, b, b + 1).to_vector<double>()) BOOST_TEST(x == 0);
    }
    // The static term has the gradient of the one sample that has keys.
    std::vector<Tensor> alone = leaves_of(sample(inputs.all, 1, S));
    options.key_lengths = {};
    backward(attend(alone, options), random({B, T, N, d}, 98).sliced(0, 1, 2));
    BOOST_TEST(is_close(grad(leaves[3]).to_vector<double>(), grad(alone[3]).to_vector<double>(), 1e-12));
  }
}

BOOST_AUTO_TEST_CASE(masked_entries_are_those_of_a_shorter_source) {
  const Inputs inputs;
  std::vector<uint8_t> entries;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t s = 0; s < S; ++s) entries.push_back(s < kLengths[static_cast<size_t>(b)]);
  DcmhaOptions by_length, by_entry;
  by_length.mask = by_entry.mask = {false, 0, 0};
  by_length.key_lengths = kLengths;
  by_entry.attend = from_vector(entries, {B, 1, T, S});
  const std::vector<double> want = attend(inputs.all, by_length).to_vector<double>();
  BOOST_TEST(is_close(attend(inputs.all, by_entry).to_vector<double>(), want, 1e-13));
  by_entry.chunk = 2;  // in blocks of two rows
  BOOST_TEST(is_close(attend(inputs.all, by_entry).to_vector<double>(), want, 1e-13));
}

BOOST_AUTO_TEST_CASE(bias_mask_and_wide_values_by_loops) {
  const Inputs inputs;
  // ALiBi: a slope per head; and no head sees the key t + 1, the first head none behind key 4.
  const auto alibi = [](int64_t n, int64_t t, int64_t s) {
    return -std::pow(2.0, -static_cast<double>(n + 1)) * std::fabs(static_cast<double>(t - s));
  };
  const auto seen = [](int64_t n, int64_t t, int64_t s) { return s != t + 1 && (n > 0 || s <= 4); };
  std::vector<double> bias;
  std::vector<uint8_t> entries;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t s = 0; s < S; ++s) {
        bias.push_back(alibi(n, t, s));
        entries.push_back(seen(n, t, s));
      }
  DcmhaOptions options;
  options.mask = {false, 0, 0};
  options.bias = from_vector(bias, {1, N, T, S});
  options.attend = from_vector(entries, {1, N, T, S});
  const std::vector<Tensor> in{inputs.all[0], inputs.all[1], random({B, S, N, 9}, 55)};
  const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2], options);
  std::vector<Array> arrays;
  for (const Tensor& x : {in[0], in[1], in[2], options.bias}) arrays.push_back({x.shape(), x.to_vector<double>()});
  const Array want = attention_by_loops(arrays, options);
  BOOST_TEST(str(y.shape()) == str(want.shape));
  BOOST_TEST(is_close(y.to_vector<double>(), want.values, 1e-13));
}

// A masked entry has no probability after mixing, though another head of the group sees the key.
BOOST_AUTO_TEST_CASE(compose_does_not_bring_back_what_a_head_must_not_see) {
  const Inputs inputs;
  Tensor entries = full({1, N, T, S}, 1, DType::u8), bias = zeros({1, N, T, S}, DType::f64);
  entries.sliced(1, 0, 1).sliced(3, 2, 3).fill(0);  // head 0 and key 2
  bias.sliced(1, 0, 1).sliced(3, 2, 3).fill(-std::numeric_limits<double>::infinity());
  for (const bool by_bias : {false, true}) {
    DcmhaOptions options;
    options.mask = {false, 0, 0};
    options.bias_place = BiasPlace::after_compose;
    (by_bias ? options.bias : options.attend) = by_bias ? bias : entries;
    std::vector<Tensor> leaves = leaves_of(inputs.all);
    Tensor dy = zeros({B, T, N, d}, DType::f64);
    dy.sliced(2, 0, 1).fill(1);
    backward(attend(leaves, options), dy);
    const Tensor dv = grad(leaves[2]);  // (B, S, N, d)
    for (const double x : dv.sliced(1, 2, 3).sliced(2, 0, 1).to_vector<double>()) BOOST_TEST(x == 0);
    for (const double x : dv.sliced(1, 1, 2).sliced(2, 0, 1).to_vector<double>()) BOOST_TEST(x != 0);
  }
}

BOOST_AUTO_TEST_CASE(derivatives_of_everything_and_of_the_bias) {
  const Inputs inputs;
  for (const BiasPlace place : {BiasPlace::before_compose, BiasPlace::after_compose}) {
    for (const int64_t chunk : {0, 2}) {  // 2: several blocks, computed again in the backward pass
      const auto f = [&](const std::vector<Tensor>& in) {
        DcmhaOptions options;
        options.mask = {true, 3, 2};
        options.bias = in.back();
        options.bias_place = place;
        options.dropout = 0.3;
        options.dropout_key = RandomKey{5};
        options.chunk = chunk;
        return attend(in, options);
      };
      std::vector<Tensor> in = inputs.all;
      in.push_back(random({1, N, T, S}, 77));
      const GradcheckResult result = gradcheck(f, in);
      BOOST_TEST_CONTEXT("chunk " << chunk << ": " << result.where) BOOST_TEST(result.error < 1e-7);
    }
  }
}

// Where nothing mixes heads the two places are one; where something does, they differ.
BOOST_AUTO_TEST_CASE(the_place_of_the_bias_matters_under_compose_alone) {
  const Inputs inputs;
  DcmhaOptions before, after;
  before.bias = after.bias = random({B, N, T, S}, 78);
  after.bias_place = BiasPlace::after_compose;
  const auto plain = [&](const DcmhaOptions& o) {
    return scaled_dot_product_attention(inputs.all[0], inputs.all[1], inputs.all[2], o).to_vector<double>();
  };
  BOOST_TEST(is_close(plain(before), plain(after), 1e-15));
  BOOST_TEST(
      !is_close(attend(inputs.all, before).to_vector<double>(), attend(inputs.all, after).to_vector<double>(), 1e-3));
}

BOOST_AUTO_TEST_CASE(dropout_keeps_the_mean_and_follows_its_key) {
  // All probabilities are 1/400 and all values 1: y is the share of kept keys over 1 - p.
  const Tensor q = zeros({2, 500, 4, 1}, DType::f64), k = zeros({2, 400, 4, 1}, DType::f64);
  const Tensor v = ones({2, 400, 4, 1}, DType::f64);
  SdpaOptions options{.mask = {false, 0, 0}, .dropout = 0.25, .dropout_key = RandomKey{1}};
  const auto run = [&] { return scaled_dot_product_attention(q, k, v, options).to_vector<double>(); };
  const std::vector<double> y = run();
  double sum = 0, squares = 0;
  for (const double x : y) sum += x, squares += (x - 1) * (x - 1);
  const auto n = static_cast<double>(y.size());
  BOOST_TEST(std::fabs(sum / n - 1) < 0.002);
  // The variance of a share of 400: p / (1 - p) / 400.
  BOOST_TEST(squares / n == 0.25 / 0.75 / 400, boost::test_tools::tolerance(0.1));
  BOOST_TEST((run() == y));
  options.dropout_key = RandomKey{2};
  BOOST_TEST((run() != y));
}

// Which entries are dropped depends on the key and their place alone.
BOOST_AUTO_TEST_CASE(one_pattern_of_dropout_in_every_implementation_and_type) {
  const int64_t rows = 40, keys = 50;
  const auto run = [&](DType type, AttentionImpl impl, int64_t chunk, int64_t samples, int64_t T1, int64_t S1) {
    const Tensor q = zeros({samples, T1, 2, 2}, type), k = zeros({samples, S1, 2, 2}, type);
    SdpaOptions options{
        .mask = {false, 0, 0}, .dropout = 0.5, .dropout_key = RandomKey{9, 4}, .impl = impl, .chunk = chunk};
    // Values of one-hot keys: y are the probabilities themselves, 0 or 2 / S.
    const Tensor v = expand(unsqueeze(unsqueeze(eye(S1, type), 1), 0), {samples, S1, 2, S1});
    return ne(scaled_dot_product_attention(q, k, v, options), 0.0);  // (samples, T, 2, S)
  };
  const Tensor want = run(DType::f64, AttentionImpl::reference, 0, 2, rows, keys);
  const std::vector<uint8_t> all = want.to_vector<uint8_t>();
  const auto share = static_cast<double>(std::ranges::count(all, 1)) / static_cast<double>(all.size());
  BOOST_TEST(std::fabs(share - 0.5) < 0.03);
  for (const int64_t chunk : {0, 1, 7, 16, 100})
    BOOST_TEST((run(DType::f64, AttentionImpl::chunked, chunk, 2, rows, keys).to_vector<uint8_t>() == all));
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    BOOST_TEST((run(type, AttentionImpl::automatic, 3, 2, rows, keys).to_vector<uint8_t>() == all));
  // Fewer samples, rows and keys keep theirs.
  const Tensor part = want.sliced(0, 0, 1).sliced(1, 0, 21).sliced(3, 0, 33).contiguous();
  BOOST_TEST(
      (run(DType::f64, AttentionImpl::automatic, 0, 1, 21, 33).to_vector<uint8_t>() == part.to_vector<uint8_t>()));
}

BOOST_AUTO_TEST_CASE(queries_without_any_key_give_zeros_and_no_gradients) {
  const Inputs inputs;
  for (const AttentionImpl impl : {AttentionImpl::automatic, AttentionImpl::reference}) {
    for (const bool bias_masks : {false, true}) {
      std::vector<uint8_t> entries(static_cast<size_t>(T * S), 1);
      std::vector<double> bias(entries.size(), 0.5);
      for (int64_t s = 0; s < S; ++s) {
        entries[static_cast<size_t>(2 * S + s)] = 0;  // row 2
        bias[static_cast<size_t>(2 * S + s)] = -std::numeric_limits<double>::infinity();
      }
      DcmhaOptions options;
      options.mask = {false, 0, 0};
      options.impl = impl;
      if (!bias_masks) options.attend = from_vector(entries, {1, 1, T, S});
      Tensor leaf = from_vector(bias_masks ? bias : std::vector<double>(bias.size(), 0.5), {1, 1, T, S});
      require_grad(leaf);
      options.bias = leaf;
      options.bias_place = BiasPlace::after_compose;
      std::vector<Tensor> leaves = leaves_of(inputs.all);
      const Tensor y = attend(leaves, options);
      backward(y, random({B, T, N, d}, 98));
      for (const double x : y.detach().sliced(1, 2, 3).to_vector<double>()) BOOST_TEST(x == 0);
      for (const double x : grad(leaves[0]).sliced(1, 2, 3).to_vector<double>()) BOOST_TEST(x == 0);
      for (const double x : grad(leaf).sliced(2, 2, 3).to_vector<double>()) BOOST_TEST(x == 0);
      bool moved = false;
      for (const double x : grad(leaf).to_vector<double>()) moved = moved || x != 0;
      BOOST_TEST(moved);
      for (const Tensor& x : leaves)
        for (const double g : grad(x).to_vector<double>()) BOOST_TEST_REQUIRE(std::isfinite(g));
    }
  }
}

// T = S + offset queries: the last stands at the last key, in every implementation as by an offset.
BOOST_AUTO_TEST_CASE(bottom_right_is_the_offset_that_ends_at_the_last_key) {
  const Inputs inputs;
  for (const AttentionImpl impl : {AttentionImpl::fused, AttentionImpl::chunked, AttentionImpl::reference}) {
    DcmhaOptions corner, offset, plain;
    corner.impl = offset.impl = plain.impl = impl;
    corner.alignment = CausalAlignment::bottom_right;
    offset.mask.offset = S - T;
    const std::vector<double> got = attend(inputs.all, corner).to_vector<double>();
    BOOST_TEST((got == attend(inputs.all, offset).to_vector<double>()));
    BOOST_TEST(!is_close(got, attend(inputs.all, plain).to_vector<double>(), 1e-3));
  }
}

BOOST_AUTO_TEST_CASE(a_shared_bias_sums_its_gradient_in_more_than_16_bits) {
  // Every sample adds d (y dy) / d bias = +-1/4; 1024 of them in bf16 would stop far below the sum.
  const int64_t samples = 2048;
  const Tensor q = zeros({samples, 1, 1, 1}, DType::bf16), k = zeros({samples, 2, 1, 1}, DType::bf16);
  const Tensor v =
      expand(reshape(from_vector(std::vector<float>{1, 0}, {2}).to(DType::bf16), {1, 2, 1, 1}), {samples, 2, 1, 1});
  Tensor bias = zeros({1, 1, 1, 2}, DType::bf16);
  require_grad(bias);
  SdpaOptions options{.mask = {false, 0, 0}, .bias = bias};
  backward(scaled_dot_product_attention(q, k, v, options), full({samples, 1, 1, 1}, 1, DType::bf16));
  BOOST_TEST((grad(bias).to(DType::f32).to_vector<float>() == std::vector<float>{512, -512}));
}

BOOST_AUTO_TEST_CASE(a_mask_that_changed_before_the_backward_pass_is_an_error) {
  std::vector<Tensor> leaves = leaves_of(Inputs().all);
  DcmhaOptions options;
  options.attend = full({1, 1, T, S}, 1, DType::u8);
  const Tensor y = attend(leaves, options);
  options.attend.fill(0);
  BRAID_CHECK_FAILS(backward(y, random({B, T, N, d}, 98)), ErrorKind::misuse, "in place");
}

BOOST_AUTO_TEST_CASE(mistakes) {
  const Inputs inputs;
  const auto fails = [&](const std::function<void(SdpaOptions&)>& change, const char* text) {
    SdpaOptions options;
    change(options);
    BRAID_CHECK_FAILS(scaled_dot_product_attention(inputs.all[0], inputs.all[1], inputs.all[2], options),
                      ErrorKind::misuse, "[scaled_dot_product_attention]", text);
  };
  fails([](auto& o) { o.mask = {false, 3, 0}; }, "needs mask.causal = true");
  fails([](auto& o) { o.mask.offset = (int64_t{1} << 60) + 1; }, "offset 1152921504606846977 is not within +-2^60");
  fails([](auto& o) { o.key_lengths = {1, 2}; }, "needs one key length for each of 3 samples, got 2");
  fails([](auto& o) { o.key_lengths = {1, 2, 8}; }, "the key length of sample 2 is 8, expected 0 to 7");
  fails(
      [](auto& o) {
        o.attend = zeros({1, 1, 5, 6}, DType::u8);
      },
      "attend must be (1 or B, 1 or N, T, S) of (3, 4, 5, 7)");
  fails([](auto& o) { o.attend = zeros({1, 1, 5, 7}); }, "attend must be u8");
  fails([](auto& o) { o.bias = zeros({1, 1, 5, 7}); }, "bias must be f64");
  fails([](auto& o) { o.dropout = 1; }, "dropout must be a probability in [0, 1), got 1");
  fails([](auto& o) { o.dropout = 0.5, o.impl = AttentionImpl::fused; },
        "have no fused kernel: impl must be automatic, chunked or");
  fails([](auto& o) { o.softcap = 2, o.impl = AttentionImpl::fused; }, "softcap and values of another size");
  fails([](auto& o) { o.softcap = -1; }, "softcap must be positive, or 0 for none; got -1");
  const std::vector<Document> documents{{0, 0, 7}, {1, 0, 7}, {2, 0, 7}};
  fails([&](auto& o) { o.documents = &documents, o.key_lengths = {1, 2, 3}; }, "takes key_lengths or documents");
  fails([&](auto& o) { o.documents = &documents, o.alignment = CausalAlignment::bottom_right; },
        "alignment must be top_left");
  BRAID_CHECK_FAILS(scaled_dot_product_attention(zeros({2, 8, 6, 4}), zeros({2, 8, 5, 4}), zeros({2, 8, 5, 4})),
                    ErrorKind::misuse, "inputs are (B, T, N, d): transpose(x, 1, 2)");
  BRAID_CHECK_FAILS(scaled_dot_product_attention(zeros({2, 8, 6, 4}), zeros({2, 7, 5, 4}), zeros({2, 7, 5, 4})),
                    ErrorKind::misuse, "expected a divisor of the query heads");
}

BOOST_AUTO_TEST_SUITE_END()
