#include <cmath>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

const std::vector<std::vector<Shape>> kFactoryShapes{
    {{}}, {{0}}, {{1}}, {{15}}, {{16}}, {{3, 11}}, {{2, 1, 3, 1, 2, 2}}, {{3, 181}}};
constexpr RandomKey kKey{5, 6};

// Element i of the stream in (0, 1), from the definition.
double drawn(int64_t i) { return (std::floor(random_bits(static_cast<uint64_t>(i), kKey) / 512.0) + 0.5) / 8388608.0; }
// Elements 2k and 2k + 1 are computed from the uniform elements 2k and 2k + 1 (Box and Muller).
double drawn_normal(int64_t i) {
  const double radius = std::sqrt(-2 * std::log(drawn(i / 2 * 2))), angle = 2 * M_PI * drawn(i / 2 * 2 + 1);
  return i % 2 == 0 ? radius * std::cos(angle) : radius * std::sin(angle);
}

// op(x) = x + made(shape of x), so that the row says in which type and on which device.
OpRow made(const char* name, Tensor (*make)(const Tensor& like), double (*element)(int64_t i)) {
  return {.name = name,
          .op = [make](const auto& in) { return add(in[0], make(in[0])); },
          .reference =
              [element](const auto& in) {
                Array y = in[0];
                for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += element(static_cast<int64_t>(i));
                return y;
              },
          .cases = kFactoryShapes,
          .f32_tolerance = 4e-6,
          .gradient_tolerance = 1e-9,
          .roundings = 2};
}

}  // namespace

std::vector<OpRow> factory_rows() {
  return {
      made(
          "ones", [](const Tensor& x) { return ones(x.shape(), x.dtype(), x.device()); }, [](int64_t) { return 1.0; }),
      made(
          "rand", [](const Tensor& x) { return rand(x.shape(), kKey, x.dtype(), x.device()); }, drawn),
      made(
          "randn", [](const Tensor& x) { return randn(x.shape(), kKey, x.dtype(), x.device()); }, drawn_normal),
      {.name = "eye",
       .op = [](const auto& in) { return add(in[0], eye(in[0].dim(0), in[0].dtype(), in[0].device())); },
       .reference =
           [](const auto& in) {
             Array y = in[0];
             for (int64_t i = 0; i < y.shape[0]; ++i) y.values[static_cast<size_t>(i * y.shape[0] + i)] += 1;
             return y;
           },
       .cases = {{{1, 1}}, {{5, 5}}, {{33, 33}}, {{0, 0}}},
       .gradient_tolerance = 1e-9},
  };
}

}  // namespace braid::test
