// The kernel against its formulas, head by head: sizes of heads that are compiled on their own and others, more heads
// than share their roots, rotations of all pairs, of some and of none.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/tensor/kernels/backend.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(split_qkv_kernel)

namespace {

constexpr double kEps = 0.05;

struct Case {
  int64_t N, Nkv, d, half;  // query heads, key/value heads, their size, pairs that are rotated
  bool norm;
};

// One head of one token. x: read; y, or dy: (d); weight: null without norm.
struct Head {
  const Case& c;
  const double *x, *weight, *cosine, *sine;

  double rstd() const {
    double squares = 0;
    for (int64_t e = 0; e < c.d; ++e) squares += x[e] * x[e];
    return 1 / std::sqrt(squares / static_cast<double>(c.d) + kEps);
  }
  // y = n rotated by sign times the angles.
  std::vector<double> rotated(const std::vector<double>& n, double sign) const {
    std::vector<double> y = n;
    for (int64_t e = 0; e < c.half; ++e) {
      const auto first = static_cast<size_t>(e), second = static_cast<size_t>(e + c.half);
      y[first] = n[first] * cosine[e] - sign * n[second] * sine[e];
      y[second] = n[second] * cosine[e] + sign * n[first] * sine[e];
    }
    return y;
  }
  std::vector<double> forward() const {
    std::vector<double> n(x, x + c.d);
    for (size_t e = 0; weight && e < n.size(); ++e) n[e] *= rstd() * weight[e];
    return rotated(n, 1);
  }
  // dx; adds to dw.
  std::vector<double> backward(const double* dy, double* dw) const {
    std::vector<double> dn = rotated({dy, dy + c.d}, -1);
    if (!weight) return dn;
    const double r = rstd();
    double mean = 0;
    for (size_t e = 0; e < dn.size(); ++e) {
      dw[e] += dn[e] * x[e] * r;
      mean += dn[e] * weight[e] * x[e] * r / static_cast<double>(c.d);
    }
    for (size_t e = 0; e < dn.size(); ++e) dn[e] = r * (dn[e] * weight[e] - x[e] * r * mean);
    return dn;
  }
};

void check_case(const Case& c, DType type) {
  constexpr int64_t B = 2, T = 3;
  const int64_t width = (c.N + 2 * c.Nkv) * c.d;
  const DType wide = accumulate_type(type);
  const Tensor x = random_tensor({B, T, width}, 1, type), none;
  QkvSplit how{.heads = c.N, .kv_heads = c.Nkv, .head_dim = c.d, .norm_eps = kEps};
  if (c.norm) how.q_norm = random_tensor({c.d}, 2, type), how.k_norm = random_tensor({c.d}, 3, type);
  if (c.half > 0)
    how.cosine = random_tensor({1, T, c.half}, 4, wide), how.sine = random_tensor({1, T, c.half}, 5, wide);
  Tensor y[3], dy[3];
  for (size_t part = 0; part < 3; ++part) {
    const int64_t heads = part == 0 ? c.N : c.Nkv;
    y[part] = full({B, T, heads, c.d}, std::nan(""), type);
    dy[part] = random_tensor({B, T, heads, c.d}, 6 + part, type);
  }
  Tensor dx = full({B, T, width}, std::nan(""), type), dq_norm, dk_norm;
  if (c.norm) dq_norm = empty({c.d}, type), dk_norm = empty({c.d}, type);
  const SplitQkvKernels& kernels = cpu_backend().split_qkv;
  kernels.forward(x, how, y[0], y[1], y[2]);
  kernels.backward(x, how, dy[0], dy[1], dy[2], dx, dq_norm, dk_norm);

  const auto values = [](const Tensor& t) { return t ? t.to_vector<double>() : std::vector<double>{}; };
  const std::vector<double> in = values(x), cosine = values(how.cosine), sine = values(how.sine);
  const std::vector<double> weights[3] = {values(how.q_norm), values(how.k_norm), {}};
  std::vector<double> want_dx(in.size()), want_dw[3];
  const double tolerance = type == DType::f64 ? 1e-13 : type == DType::f32 ? 2e-6 : 0x1p-6;
  int64_t column = 0;
  for (size_t part = 0; part < 3; ++part) {
    const int64_t heads = y[part].dim(2);
    const std::vector<double> gradient = values(dy[part]);
    std::vector<double> want;
    want_dw[part].resize(static_cast<size_t>(c.d));
    for (int64_t token = 0; token < B * T; ++token) {
      for (int64_t n = 0; n < heads; ++n) {
        const int64_t at = token * width + column + n * c.d, angle = token % T * c.half;
        const Case own{c.N, c.Nkv, c.d, part < 2 ? c.half : 0, c.norm};
        const Head head{own, in.data() + at, weights[part].empty() ? nullptr : weights[part].data(),
                        cosine.data() + angle, sine.data() + angle};
        const std::vector<double> result = head.forward();
        want.insert(want.end(), result.begin(), result.end());
        const std::vector<double> d = head.backward(gradient.data() + (token * heads + n) * c.d, want_dw[part].data());
        std::copy(d.begin(), d.end(), want_dx.begin() + at);
      }
    }
    column += heads * c.d;
    BOOST_TEST(is_close(values(y[part]), want, tolerance, 1), "result " << part);
  }
  BOOST_TEST(is_close(values(dx), want_dx, tolerance, 1));
  if (!c.norm) return;
  BOOST_TEST(is_close(values(dq_norm), want_dw[0], 4 * tolerance, 1));
  BOOST_TEST(is_close(values(dk_norm), want_dw[1], 4 * tolerance, 1));
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_size_of_heads_by_its_formulas) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t d : {16, 32, 64, 128, 80, 7}) {
      for (const int64_t half : {int64_t{0}, d / 4, d / 2}) {
        for (const bool norm : {true, false}) {
          BOOST_TEST_CONTEXT(str(type) << " d " << d << " half " << half << (norm ? " norm" : "")) {
            check_case({35, 17, d, half, norm}, type);  // three and two groups of heads, the last of them short
            check_case({2, 1, d, half, norm}, type);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
