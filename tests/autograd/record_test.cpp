// What an op notes when it is recorded, and what a pass leaves behind.
#include "braid/autograd/record.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <stdexcept>

#include "braid/autograd.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(recorded)

namespace {
Tensor leaf() {
  Tensor x = from_values({1, 2, 3, 4, 5, 6}, {2, 3}, DType::f64);
  require_grad(x);
  return x;
}
Tensor with(const ValuesAndIndices& y, Tensor& indices) {
  indices = y.indices;
  return y.values;
}
// An op of x (2, 3), and a tensor without gradient that its derivative reads: an input, or one that the op returns.
struct Reader {
  const char* name;
  Tensor read;
  std::function<Tensor(const Tensor& x, Tensor& read)> op;
};
std::vector<Reader> readers() {
  const Tensor ids = zeros({2}, DType::i64), mask = zeros({2, 3}, DType::u8), table = zeros({1, 1, 1}, DType::f64);
  return {
      {"masked_fill", mask, [](auto& x, auto& m) { return masked_fill(x, m, 3); }},
      {"where", mask, [](auto& x, auto& m) { return where(m, x, x); }},
      {"index_select", ids, [](auto& x, auto& i) { return index_select(x, i); }},
      {"embedding", ids, [](auto& x, auto& i) { return embedding(x, i); }},
      {"gather", ids, [](auto& x, auto& i) { return gather(x, i); }},
      {"bincount", zeros({6}, DType::i64), [](auto& x, auto& i) { return bincount(i, reshape(x, {6})); }},
      {"cross_entropy", ids, [](auto& x, auto& i) { return cross_entropy(x, i); }},
      {"cross_entropy_per_token", ids, [](auto& x, auto& i) { return cross_entropy_per_token(x, i); }},
      {"linear_cross_entropy", ids, [](auto& x, auto& i) { return linear_cross_entropy(x, x, i); }},
      {"rope", table,
       [](auto& x, auto& t) {
         return rope(reshape(x, {1, 1, 1, 6}), t, t);
       }},
      {"split_qkv", table,
       [](auto& x, auto& t) {
         return split_qkv(reshape(x, {1, 1, 6}), {.heads = 1, .kv_heads = 1, .head_dim = 2, .cosine = t, .sine = t}).q;
       }},
      {"sort", {}, [](auto& x, auto& i) { return with(sort(x), i); }},
      {"topk", {}, [](auto& x, auto& i) { return with(topk(x, 1, 0, false), i); }},
      {"kthvalue", {}, [](auto& x, auto& i) { return with(kthvalue(x, 1, 0, false), i); }},
      {"cummax", {}, [](auto& x, auto& i) { return with(cummax(x, 0), i); }},
      {"max_with_indices", {}, [](auto& x, auto& i) { return with(max_with_indices(x, 1), i); }},
  };
}
}  // namespace

BOOST_AUTO_TEST_CASE(what_a_derivative_reads_may_be_written_behind_it_alone) {
  for (const Reader& reader : readers()) {
    BOOST_TEST_CONTEXT(reader.name) {
      Tensor x = leaf(), read = reader.read, y = sum(reader.op(x, read));
      BOOST_TEST(!requires_grad(read));
      read.fill(0);
      BOOST_TEST(throws_with([&] { backward(y); }, "was written in place"));
      for (int step = 0; step < 2; ++step) {  // in one buffer
        backward(sum(reader.op(x, read)));
        read.fill(0);
      }
      BOOST_TEST(bool(grad(x)));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_derivative_that_reads_sizes_alone_allows_writes) {
  const std::function<Tensor(const Tensor&)> ops[] = {
      [](const Tensor& x) {
        return split(x, {1, 1}, 0)[0];
      },
      [](const Tensor& x) { return chunk(x, 2)[0]; },
      [](const Tensor& x) { return unbind(x)[0]; },
      [](const Tensor& x) {
        return concat({x, x}, 0);
      },
      [](const Tensor& x) {
        return stack({x, x});
      },
      [](const Tensor& x) { return roll(x, 1, 0); },
      [](const Tensor& x) {
        return pad(x, {{0, 1, 1}});
      },
      [](const Tensor& x) { return tap(x, [](const Tensor& dy) { return dy; }); },
  };
  for (const auto& op : ops) {
    Tensor x = leaf(), y = sum(op(x));
    x.fill(7);
    BOOST_CHECK_NO_THROW(backward(y));
  }
}

// The gradient of a result that arrived in a pass that an exception ended is not that of the next pass.
BOOST_AUTO_TEST_CASE(a_pass_that_failed_leaves_no_gradient) {
  const Tensor x = leaf();
  bool fails = true;
  const std::vector<Tensor> parts = split(x, {1, 1}, 0);
  const auto may_fail = [&](const Tensor& dy) { return fails ? throw std::runtime_error("interrupted") : dy; };
  const Tensor a = sum(tap(parts[0], may_fail)), b = sum(parts[1] * 10.0);
  BOOST_CHECK_THROW(backward(a + b, {}, {.keep = true}), std::runtime_error);
  fails = false;
  BOOST_TEST(is_close(grad(a, {x}, {.keep = true})[0].to_vector<double>(), {1, 1, 1, 0, 0, 0}, 0));
}

BOOST_AUTO_TEST_SUITE_END()
