// Kernels that convert 16-bit elements in registers: the bits of the conversion of one element (tensor/dtype.h), with
// every instruction set, at every length.
#include "braid/tensor/cpu/map.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/tensor/cpu/instruction_sets.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "braid/tensor/strict.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cpu_map)

namespace {

template <class Check>
void with_every_set(Check check) {
  for (const cpu::InstructionSet* set : cpu::instruction_sets()) {
    for (const bool strict : {false, true}) {
      BOOST_TEST_CONTEXT(set->name << (strict ? ", strict" : "")) {
        cpu::use_instruction_set(set->name);
        const StrictBits bits(strict);
        check();
      }
    }
  }
  cpu::use_instruction_set("");
}

template <class T>
std::vector<uint16_t> bits(const Tensor& x) {
  std::vector<uint16_t> out;
  for (int64_t i = 0; i < x.numel(); ++i) out.push_back(x.data<T>()[i].bits);
  return out;
}

// Every upper half of a float, with the lower halves around the middle between two of bf16, and around two of f16.
std::vector<float> edges() {
  std::vector<float> x;
  for (uint32_t upper = 0; upper < 65536; ++upper)
    for (const uint32_t lower : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
  x.push_back(1);  // an odd number of them
  return x;
}

template <class T>
void rounds_as_one_element() {
  const std::vector<float> x = edges();
  std::vector<uint16_t> want;
  for (const float v : x) want.push_back(T(v).bits);
  with_every_set([&] { BOOST_TEST((bits<T>(from_vector(x, {std::ssize(x)}).to(dtype_of<T>())) == want)); });
}

template <class T>
void widens_as_one_element() {
  Tensor x = empty({65536}, dtype_of<T>());
  for (uint32_t u = 0; u < 65536; ++u) x.mutable_data<T>()[u].bits = static_cast<uint16_t>(u);
  with_every_set([&] {
    const Tensor y = x.to(DType::f32);
    int wrong = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      const float want = float(x.data<T>()[i]), got = y.data<float>()[i];
      wrong += std::isnan(want) ? !std::isnan(got) : std::bit_cast<uint32_t>(want) != std::bit_cast<uint32_t>(got);
    }
    BOOST_TEST(wrong == 0);
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(floats_are_rounded_to_16_bits_as_one_by_one) {
  rounds_as_one_element<bfloat16>();
  rounds_as_one_element<float16>();
}

BOOST_AUTO_TEST_CASE(elements_of_16_bits_become_the_same_floats) {
  widens_as_one_element<bfloat16>();
  widens_as_one_element<float16>();
}

// One and two results, inputs of 16 and of 32 bits, an output that is an input; nothing is written beyond the end.
BOOST_AUTO_TEST_CASE(every_length_is_computed_in_f32_and_rounded_once) {
  for (const DType t : {DType::bf16, DType::f16}) {
    for (int64_t n = 0; n < 100; ++n) {
      const Tensor x = random_tensor({n + 1}, 1, DType::f32).to(t).sliced(0, 0, n),
                   y = random_tensor({n + 1}, 2, DType::f32).to(t).sliced(0, 0, n),
                   u = random_tensor({n}, 3, DType::f32);
      const std::vector<float> a = x.to_vector<float>(), b = y.to_vector<float>(), c = u.to_vector<float>();
      std::vector<float> product, sum;
      for (size_t i = 0; i < a.size(); ++i) product.push_back(a[i] * b[i]), sum.push_back(a[i] + c[i]);
      visit_float(t, "map", [&]<class T>() {
        if constexpr (sizeof(T) == 2) {
          Tensor first = full({n + 1}, 7, t), second = full({n + 1}, 7, t), same = x.clone();
          const auto both = [](float v, float w, float z) { return std::array{v * w, v + z}; };
          cpu::map(n, std::array{first.mutable_data<T>(), second.mutable_data<T>()},
                   cpu::inputs(x.data<T>(), y.data<T>(), u.data<float>()), both);
          cpu::map(n, same.mutable_data<T>(), cpu::inputs(same.data<T>(), y.data<T>()),
                   [](float v, float w) { return v * w; });
          BOOST_TEST(same_bits(first.sliced(0, 0, n), from_vector(product, {n}).to(t)));
          BOOST_TEST(same_bits(second.sliced(0, 0, n), from_vector(sum, {n}).to(t)));
          BOOST_TEST(same_bits(same, from_vector(product, {n}).to(t)));
          BOOST_TEST(first.to_vector<float>().back() == 7);
          BOOST_TEST(second.to_vector<float>().back() == 7);
        }
      });
    }
  }
}

// In the order of memory: rows that are widened, narrowed and rounded in place, at every length.
BOOST_AUTO_TEST_CASE(rows_are_converted_as_one_by_one) {
  const std::vector<float> all = edges();
  for (const DType t : {DType::bf16, DType::f16})
    visit_float(t, "map", [&]<class T>() {
      if constexpr (sizeof(T) == 2) {
        for (size_t n = 0, at = 0; n < 100; ++n, at += 5897) {
          const float* x = all.data() + at;
          std::vector<T> rows(n + 1, T(7));
          std::vector<float> rounded(x, x + n), wide(n + 1, 7);
          const auto length = static_cast<int64_t>(n);
          cpu::narrow(length, x, rows.data());
          cpu::round_to<T>(length, rounded.data());
          cpu::widen(length, rows.data(), wide.data());
          for (size_t i = 0; i < n; ++i) {
            BOOST_TEST(rows[i].bits == T(x[i]).bits);
            BOOST_TEST(T(rounded[i]).bits == rows[i].bits);
            BOOST_TEST((std::isnan(x[i]) ? std::isnan(wide[i]) && std::isnan(rounded[i])
                                         : wide[i] == float(rows[i]) && rounded[i] == wide[i]));
          }
          BOOST_TEST((rows[n].bits == T(7).bits && wide[n] == 7));
        }
      }
    });
}

// Heads: a norm and a rotation have the rounded bits of f32, and both together those of one after the other.
BOOST_AUTO_TEST_CASE(heads_are_rounded_after_the_norm_and_after_the_rotation) {
  constexpr int64_t T = 3, N = 18;
  for (const DType t : {DType::bf16, DType::f16}) {
    for (const int64_t d : {6, 16, 32, 40, 64, 128}) {
      const Tensor x = random_tensor({1, T, 3 * N * d}, 1, DType::f32).to(t),
                   w = random_tensor({d}, 2, DType::f32).to(t), cosine = random_tensor({1, T, d / 2}, 3, DType::f32),
                   sine = random_tensor({1, T, d / 2}, 4, DType::f32);
      const auto queries = [&](DType type, bool norm, bool rotated) {
        QkvSplit how{.heads = N, .kv_heads = N, .head_dim = d, .norm_eps = 1e-5};
        if (norm) how.q_norm = how.k_norm = w.to(type);
        if (rotated) how.cosine = cosine, how.sine = sine;
        Tensor y[3];
        for (Tensor& part : y) part = empty({1, T, N, d}, type);
        cpu_backend().split_qkv.forward(x.to(type), how, y[0], y[1], y[2]);
        return y[0];
      };
      const auto turned = [&](const Tensor& q) {
        Tensor y = empty(q.shape(), q.dtype());
        cpu_backend().rope.rotate(q, cosine, sine, false, y);
        return y;
      };
      with_every_set([&] {
        const Tensor normed = queries(t, true, false);
        BOOST_TEST(same_bits(normed, queries(DType::f32, true, false).to(t)), "d " << d);
        BOOST_TEST(same_bits(turned(normed), turned(normed.to(DType::f32)).to(t)), "d " << d);
        BOOST_TEST(same_bits(queries(t, true, true), turned(normed)), "d " << d);
        BOOST_TEST(same_bits(queries(t, false, true), queries(DType::f32, false, true).to(t)), "d " << d);
      });
    }
  }
}

// Ops without sums of products: in 16 bits the rounded bits of f32, however an input lies in memory.
BOOST_AUTO_TEST_CASE(ops_have_the_rounded_bits_of_f32) {
  const auto run = [](DType t, BinaryOp op, const Tensor& x, const Tensor& y) {
    Tensor z = empty(x.shape(), t);
    cpu_backend().pointwise.binary(op, x.to(t), y.to(t), z);
    return z;
  };
  for (const DType t : {DType::bf16, DType::f16}) {
    const Tensor x = random_tensor({9, 133}, 1, DType::f32).to(t).to(DType::f32),
                 y = random_tensor({9, 133}, 2, DType::f32).to(t).to(DType::f32),
                 row = y.sliced(0, 3, 4).expanded({9, 133}), column = y.sliced(1, 5, 6).expanded({9, 133}),
                 turned = random_tensor({133, 9}, 3, DType::f32).to(t).to(DType::f32).transposed(0, 1);
    with_every_set([&] {
      for (const BinaryOp op : {BinaryOp::add, BinaryOp::mul, BinaryOp::div, BinaryOp::maximum}) {
        for (const Tensor& second : {y, row, column, turned}) {
          BOOST_TEST(same_bits(run(t, op, x, second), run(DType::f32, op, x, second).to(t)));
          BOOST_TEST(same_bits(run(t, op, second, x), run(DType::f32, op, second, x).to(t)));
        }
      }
      Tensor dropped = empty(x.shape(), t), of_f32 = empty(x.shape());
      cpu_backend().random.dropout(x.to(t), 0.3, {1, 2}, dropped);
      cpu_backend().random.dropout(x, 0.3, {1, 2}, of_f32);
      BOOST_TEST(same_bits(dropped, of_f32.to(t)));
    });
  }
}

// Positions, branches without a gradient, numbers of heads that are constants and one that is not.
BOOST_AUTO_TEST_CASE(compose_factors_of_16_bits_have_the_rounded_bits_of_f32) {
  constexpr int64_t P = 37, G = 2, C = 3, R = 2;
  for (const DType t : {DType::bf16, DType::f16}) {
    for (const int64_t M : {4, 5, 8}) {
      const auto make = [t, seed = uint64_t{0}](const Shape& shape) mutable {
        return random_tensor(shape, ++seed, DType::f32).to(t).to(DType::f32);
      };
      auto inputs = make;
      const Tensor w = inputs({G, C, P, 2 * R, M}), gates = inputs({P, G, C, M});
      std::vector<Tensor> dys;
      for (int64_t c = 0; c < C; ++c) {
        dys.push_back(c == 0 ? Tensor() : inputs({P, G, R, M}));
        dys.push_back(c == 1 ? Tensor() : inputs({P, G, R, M}));
        dys.push_back(c == 2 ? Tensor() : inputs({P, G, M}));
      }
      const auto run = [&](DType type) {
        Tensor y = empty({P, G, C, 2 * R + 1, M}, type), dw = empty(w.shape(), type),
               dgates = empty(gates.shape(), type);
        std::vector<Tensor> gradients;
        for (const Tensor& dy : dys) gradients.push_back(dy ? dy.to(type) : dy);
        cpu_backend().compose_factors.forward(w.to(type), gates.to(type), 1e-6, y);
        cpu_backend().compose_factors.backward(w.to(type), gates.to(type), 1e-6, gradients, dw, dgates);
        return std::array{y, dw, dgates};
      };
      with_every_set([&] {
        const auto got = run(t), want = run(DType::f32);
        for (size_t i = 0; i < got.size(); ++i) BOOST_TEST(same_bits(got[i], want[i].to(t)), "M = " << M << ", " << i);
      });
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
