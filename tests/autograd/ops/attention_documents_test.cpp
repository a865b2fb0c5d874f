// Attention within documents of packed sequences: each of them as if it were called alone, in f64.
#include "braid/autograd.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/dcmha_cases.h"

namespace braid {
BOOST_AUTO_TEST_SUITE(attention_documents)

namespace {

using test::DcmhaCall;
using test::DcmhaCase;
using test::is_close;

// The result and the gradients of the call on every document by itself, written to their places.
std::vector<Tensor> one_by_one(const DcmhaCase& c, DcmhaCall& call, const std::vector<Document>& documents) {
  using enum AttentionRole::Positions;
  std::vector<AttentionRole::Positions> axes;
  const DcmhaInputs names = test::call_of(call.x);
  for_each_tensor([&](const AttentionRole& role, const Tensor&) { axes.push_back(role.positions); }, names);
  Tensor y = zeros(call.dy.shape(), DType::f64);
  std::vector<Tensor> gradients;
  for (const Tensor& t : call.x) gradients.push_back(t ? zeros_like(t.detach()) : Tensor());
  for (const Document& d : documents) {
    const int64_t offset = c.options.mask.offset, t0 = std::clamp<int64_t>(d.begin - offset, 0, c.T),
                  t1 = std::clamp<int64_t>(d.end - offset, 0, c.T);
    if (t0 >= t1) continue;
    const int64_t s0 = d.begin, s1 = std::min(d.end, c.S);
    const auto part = [&](const Tensor& t, AttentionRole::Positions axis) {
      if (axis == none) return t;
      return t.sliced(0, d.sample, d.sample + 1).sliced(1, axis == queries ? t0 : s0, axis == queries ? t1 : s1);
    };
    std::vector<Tensor> leaves;
    for (size_t i = 0; i < call.x.size(); ++i) {
      leaves.push_back(call.x[i] ? part(call.x[i].detach(), axes[i]).clone() : Tensor());
      if (leaves.back()) require_grad(leaves.back());
    }
    DcmhaOptions options = c.options;
    options.documents = nullptr;
    options.groups = c.G;
    options.impl = AttentionImpl::reference;
    options.mask.offset = t0 + offset - s0;
    const DcmhaInputs in = test::call_of(leaves);
    const Tensor alone = dcmha(in.q, in.k, in.v, in.pre, in.post, options);
    part(y, queries).copy_(alone.detach());
    backward(alone, part(call.dy, queries).clone());
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i] && grad(leaves[i])) part(gradients[i], axes[i]).add_(grad(leaves[i]));
  }
  std::vector<Tensor> all{y};
  for (const Tensor& g : gradients)
    if (g) all.push_back(g);
  return all;
}

void check(DcmhaCase c, const std::vector<Document>& documents) {
  c.options.documents = &documents;
  DcmhaCall call(c, 21);
  const std::vector<Tensor> expected = one_by_one(c, call, documents);
  for (const AttentionImpl impl : {AttentionImpl::fused, AttentionImpl::chunked, AttentionImpl::reference}) {
    const std::vector<Tensor> got = call.run_with_gradients(impl, 2);
    BOOST_REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      BOOST_TEST(is_close(got[i], expected[i], 1e-12), c.text() << ", result " << i << ", " << static_cast<int>(impl));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_document_as_if_it_were_called_alone) {
  const std::vector<Document> documents = {{0, 0, 1}, {0, 1, 30}, {0, 30, 37}, {0, 37, 44}, {1, 0, 17}, {1, 17, 44}};
  for (const unsigned terms : {0x3fffu, 0x3fffu & ~0x81u, 0x0fu, 0u}) {
    for (const int64_t window : {0, 5}) {
      for (const int64_t share : {1, 2}) {
        DcmhaCase c{2, 44, 44, 2, 2, share, 5, 2, 1, {}, terms};
        c.options.mask.window = window;
        check(c, documents);
      }
    }
  }
  DcmhaCase c{2, 44, 44, 1, 3, 1, 4, 1, 2, {}, 0x3fff};
  c.options.mask.causal = false;
  check(c, documents);
}

// Queries of a stretch of the sequence, as context and tensor ranks compute them.
BOOST_AUTO_TEST_CASE(queries_may_be_a_part_of_the_sequence) {
  DcmhaCase c{1, 9, 20, 1, 4, 1, 4, 2, 2, {}, 0x3fff};
  c.options.mask.offset = 8;
  for (const int64_t window : {0, 3}) {
    c.options.mask.window = window;
    check(c, {{0, 0, 5}, {0, 5, 10}, {0, 10, 16}, {0, 16, 20}});
    check(c, {{0, 0, 20}});
  }
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  const int before = threads();
  DcmhaCase c{1, 300, 300, 1, 4, 1, 8, 2, 2, {}, 0x3fff};
  const std::vector<Document> documents = {{0, 0, 200}, {0, 200, 220}, {0, 220, 230}, {0, 230, 300}};
  c.options.documents = &documents;
  DcmhaCall call(c, 3, DType::f32);
  const std::vector<Tensor> one = call.run_with_gradients(AttentionImpl::fused, 1);
  for (const int n : {2, 5}) {
    const std::vector<Tensor> many = call.run_with_gradients(AttentionImpl::fused, n);
    for (size_t k = 0; k < one.size(); ++k) BOOST_TEST(one[k].to_vector<float>() == many[k].to_vector<float>());
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(one_document_a_sample_gives_the_bits_without_documents) {
  DcmhaCase c{2, 40, 40, 1, 4, 1, 8, 2, 2, {}, 0x3fff & ~0x81u};  // the static term's gradient is a sum over samples
  DcmhaCall plain(c, 4, DType::f32);
  const std::vector<Document> documents = {{0, 0, 40}, {1, 0, 40}};
  c.options.documents = &documents;
  DcmhaCall packed(c, 4, DType::f32);
  const std::vector<Tensor> expected = plain.run_with_gradients(AttentionImpl::fused, 2),
                            got = packed.run_with_gradients(AttentionImpl::fused, 2);
  for (size_t k = 0; k < got.size(); ++k) BOOST_TEST(got[k].to_vector<float>() == expected[k].to_vector<float>());
}

// A sum in 16 bits stays at the value beside which one more term is lost.
BOOST_AUTO_TEST_CASE(sums_over_documents_and_blocks_keep_terms_of_16_bits) {
  const int64_t T = 1024;
  std::vector<Document> documents;
  for (int64_t t = 0; t < T; ++t) documents.push_back({0, t, t + 1});
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto ones_of = [dtype](Shape shape) { return full(shape, 1.0, dtype); };
    // Each token attends to itself alone, so P = 1 and its term of the gradient is dy v^T = d.
    for (const AttentionImpl impl : {AttentionImpl::fused, AttentionImpl::chunked}) {
      const Tensor x = ones_of({1, T, 2, 4});
      HeadMixing post{.base = ones_of({1, 2, 2})};
      require_grad(post.base);
      DcmhaOptions options;
      options.impl = impl;
      options.documents = &documents;
      backward(dcmha(x, x, x, {}, post, options), ones_of({1, T, 2, 4}));
      for (const float g : grad(post.base).to(DType::f32).to_vector<float>())
        BOOST_TEST(g == 4096, str(dtype) << ", " << static_cast<int>(impl));
    }
    // Each query attends to two keys alike, so every row adds dy / 2 to both rows of dv.
    const Tensor q = ones_of({1, T, 1, 4}), k = ones_of({1, 2, 1, 4});
    Tensor v = ones_of({1, 2, 1, 4});
    require_grad(v);
    SdpaOptions options{.impl = AttentionImpl::chunked, .chunk = 1};
    options.mask.causal = false;
    backward(scaled_dot_product_attention(q, k, v, options), ones_of({1, T, 1, 4}));
    for (const float g : grad(v).to(DType::f32).to_vector<float>()) BOOST_TEST(g == 512, str(dtype));
  }
}

BOOST_AUTO_TEST_CASE(documents_begin_where_positions_are_0) {
  const std::vector<Document> d = documents_of(from_vector(std::vector<int32_t>{0, 1, 0, 1, 0, 1, 2, 0}, {2, 4}));
  BOOST_REQUIRE(d.size() == 4);
  const auto is = [&](size_t i, int64_t sample, int64_t begin, int64_t end) {
    return d[i].sample == sample && d[i].begin == begin && d[i].end == end;
  };
  BOOST_TEST((is(0, 0, 0, 2) && is(1, 0, 2, 4) && is(2, 1, 0, 3) && is(3, 1, 3, 4)));
  BOOST_TEST(test::throws_with(
      [] {
        documents_of(from_vector(std::vector<int32_t>{0, 2}, {1, 2}));
      },
      "at sample 0, token 1: expected 0 where a document begins"));
  BOOST_TEST(test::throws_with(
      [] {
        documents_of(from_vector(std::vector<int32_t>{1, 2}, {1, 2}));
      },
      "at sample 0, token 0"));
}

BOOST_AUTO_TEST_CASE(documents_that_leave_a_query_out_are_errors) {
  const auto rejects = [](std::vector<Document> documents, const char* message) {
    DcmhaCase c{2, 6, 6, 1, 2, 1, 4, 1, 1, {}, 0};
    c.options.documents = &documents;
    return test::throws_with([&] { DcmhaCall(c, 1).run(AttentionImpl::automatic); }, message);
  };
  BOOST_TEST(rejects({{0, 0, 6}}, "none contains row 0 of sample 1"));
  BOOST_TEST(rejects({{0, 0, 3}, {0, 4, 6}, {1, 0, 6}}, "expected one with row 3 of sample 0"));
  BOOST_TEST(rejects({{1, 0, 6}, {0, 0, 6}}, "expected one with row 0 of sample 0"));
  DcmhaCase c{1, 6, 6, 1, 2, 1, 4, 1, 1, {}, 0};
  DcmhaCall call(c, 1);
  DcmhaOptions options;
  const std::vector<Document> documents = {{0, 0, 6}};
  options.documents = &documents;
  BOOST_TEST(test::throws_with([&] { attention_maps(call.x[0], call.x[1], {}, {}, options); }, "whole sequences"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace braid
