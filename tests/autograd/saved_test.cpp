// Results that derivatives compute again instead of keeping them.
#include "braid/autograd/saved.h"

#include "braid/autograd.h"
#include "braid/tensor/memory.h"
#include "tests/support/compare.h"

namespace braid {
BOOST_AUTO_TEST_SUITE(saved_for_backward)

namespace {

using test::is_close;

int64_t bytes_in_use() { return memory_stats(kCpu).current; }

Tensor leaf(const Shape& shape, uint64_t stream, DType dtype = DType::f64) {
  Tensor x = randn(shape, RandomKey{7, stream}, dtype);
  return require_grad(x);
}

// A copy of x that nothing computes again.
Tensor kept(const Tensor& x) { return affine(x, 1, 0); }

struct Case {
  const char* name;
  std::function<Tensor(const std::vector<Tensor>& x)> f;
  std::vector<Shape> inputs;
};

std::vector<Case> cases() {
  return {
      {"rms_norm", [](const auto& x) { return rms_norm(x[0], x[1], 1e-6); }, {{30, 40}, {40}}},
      {"layer_norm", [](const auto& x) { return layer_norm(x[0], x[1], x[2], 1e-5); }, {{30, 40}, {40}, {40}}},
      {"add_rms_norm",
       [](const auto& x) { return add_rms_norm(x[0], x[1], x[2], 1e-6).y; },
       {{30, 40}, {30, 40}, {40}}},
      {"add_layer_norm",
       [](const auto& x) { return add_layer_norm(x[0], x[1], x[2], x[3], 1e-6).y; },
       {{30, 40}, {30, 40}, {40}, {40}}},
      {"swiglu", [](const auto& x) { return swiglu(x[0], x[1]); }, {{30, 40}, {30, 40}}},
      {"silu", [](const auto& x) { return silu(x[0]); }, {{30, 40}}},
      {"gelu", [](const auto& x) { return gelu(x[0]); }, {{30, 40}}},
      {"gelu_tanh", [](const auto& x) { return gelu_tanh(x[0]); }, {{30, 40}}},
      {"relu", [](const auto& x) { return relu(x[0]); }, {{30, 40}}},
      {"views of gelu",
       [](const auto& x) {
         return permute(reshape(gelu(x[0]), {4, 10, 30}), {2, 1, 0});
       },
       {{30, 40}}},
  };
}

// Gradients of all inputs and of a weight behind the result.
std::vector<std::vector<double>> gradients(const Case& c, bool keep, int64_t* bytes) {
  std::vector<Tensor> x;
  for (size_t i = 0; i < c.inputs.size(); ++i) x.push_back(leaf(c.inputs[i], i));
  Tensor product = leaf({3, c.f(x).dim(-1)}, 20), matrix = leaf({c.f(x).dim(-1), 5}, 21);
  const int64_t before = bytes_in_use();
  const auto value = [&] {
    Tensor y = c.f(x);
    if (keep) y = kept(y);
    return add(sum(square(linear(y, product))), sum(matmul(y, matrix)));
  };
  const Tensor loss = value();
  *bytes = bytes_in_use() - before;
  backward(loss);
  std::vector<std::vector<double>> found;
  x.push_back(product), x.push_back(matrix);
  for (const Tensor& t : x) found.push_back(grad(t).to_vector<double>());
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_computed_again_is_not_kept_and_changes_no_bit) {
  for (const Case& c : cases()) {
    BOOST_TEST_CONTEXT(c.name) {
      int64_t again = 0, all = 0;
      const auto found = gradients(c, false, &again), want = gradients(c, true, &all);
      BOOST_TEST(all - again >= 30 * 40 * 8, all << " and " << again << " bytes");
      BOOST_TEST((found == want));
    }
  }
}

// Queries and keys behind their norm: attention has them again from the product.
BOOST_AUTO_TEST_CASE(queries_and_keys_are_rotated_again) {
  const int64_t B = 2, T = 9, N = 4, d = 8;
  const auto run = [&](bool keep, int64_t* bytes) {
    Tensor x = leaf({B, T, 3 * N * d}, 1), q_norm = leaf({d}, 2), k_norm = leaf({d}, 3);
    QkvSplit how{N,
                 N,
                 d,
                 q_norm,
                 k_norm,
                 1e-6,
                 randn({1, T, d / 2}, RandomKey{7, 4}, DType::f64),
                 randn({1, T, d / 2}, RandomKey{7, 5}, DType::f64)};
    const int64_t before = bytes_in_use();
    const auto value = [&] {
      const Qkv parts = split_qkv(x, how);
      return sum(square(scaled_dot_product_attention(keep ? kept(parts.q) : parts.q, keep ? kept(parts.k) : parts.k,
                                                     parts.v, {.mask = {.causal = true}})));
    };
    const Tensor loss = value();
    *bytes = bytes_in_use() - before;
    backward(loss);
    return std::vector{grad(x).to_vector<double>(), grad(q_norm).to_vector<double>(), grad(k_norm).to_vector<double>()};
  };
  int64_t again = 0, all = 0;
  const auto found = run(false, &again), want = run(true, &all);
  BOOST_TEST(all - again == 2 * B * T * N * d * 8);
  BOOST_TEST((found == want));
}

BOOST_AUTO_TEST_CASE(all_who_saved_it_share_one_computation_and_its_memory_goes) {
  int computed = 0;
  const int64_t before = bytes_in_use();
  Tensor x = leaf({10, 16}, 1), a = leaf({4, 16}, 2), b = leaf({4, 16}, 3);
  const auto twice = [&](const Tensor& in) {
    const Tensor dense = in.detach();
    Tensor y = record("twice", scale(dense, 2), {in}, [dense](const Tensor& dy) -> Grads { return {scale(dy, 2)}; });
    return recomputable(y, [dense, &computed] {
      ++computed;
      return scale(dense, 2);
    });
  };
  Tensor loss = [&] {
    const Tensor y = twice(x);
    return add(sum(linear(y, a)), sum(mul(linear(y, b), linear(y, b))));
  }();
  BOOST_TEST(computed == 0);
  backward(loss);
  BOOST_TEST(computed == 1);
  loss = Tensor();
  for (Tensor* t : {&x, &a, &b}) zero_grad(*t);
  BOOST_TEST(bytes_in_use() - before == 8 * (10 * 16 + 2 * 4 * 16));  // the leaves
  const NoGrad off;
  BOOST_TEST(!Saved(twice(x)).is_recomputed());  // nothing is recorded, so nothing is computed again
  BOOST_TEST(!Saved());
}

BOOST_AUTO_TEST_CASE(a_write_to_what_is_read_again_throws) {
  Tensor x = leaf({10, 16}, 1), w = leaf({16}, 2), a = leaf({4, 16}, 3);
  Tensor in = scale(x, 1);
  const Tensor loss = sum(linear(rms_norm(in, w, 1e-6), a));
  {
    const NoGrad off;
    w.fill(2);
  }
  BOOST_TEST(test::throws_with([&] { backward(loss); }, "[rms_norm] an input was written in place"));
  BOOST_TEST(!grad(a));  // no gradient of wrong values arrived anywhere
}

// A product behind the write has read what was written, so that is kept.
BOOST_AUTO_TEST_CASE(a_result_that_was_written_is_not_computed_again) {
  Tensor x = leaf({10, 16}, 1), a = leaf({4, 16}, 3);
  Tensor y = relu(x), flat = reshape(y, {16, 10});
  BOOST_TEST(Saved(y).is_recomputed());
  BOOST_TEST(Saved(flat).is_recomputed());
  y.detach().fill(3);
  BOOST_TEST(!Saved(y).is_recomputed());
  BOOST_TEST(!Saved(flat).is_recomputed());
  const Tensor loss = sum(linear(y, a));
  y = flat = Tensor();
  backward(loss);
  BOOST_TEST(is_close(grad(a), full({4, 16}, 30, DType::f64), 0));  // of the values that forward multiplied
}

// The way back through views is recursive, so many of them end it.
BOOST_AUTO_TEST_CASE(a_long_chain_of_views) {
  Tensor x = leaf({10, 16}, 1), a = leaf({4, 16}, 3);
  Tensor y = relu(x);
  for (int i = 0; i < 20000; ++i) y = reshape(y, i % 2 == 0 ? Shape{16, 10} : Shape{10, 16});
  BOOST_TEST(!Saved(y).is_recomputed());
  backward(sum(linear(y, a)));
  Tensor b = leaf({4, 16}, 3);
  backward(sum(linear(relu(x), b)));
  BOOST_TEST(is_close(grad(a), grad(b), 0));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace braid
