#include "braid/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "braid/autograd/linalg.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::nn {

constinit thread_local bool detail::shape_only = false;

namespace {

struct Fans {
  double in, out;
};

Fans fans(const char* name, const Shape& shape) {
  check(shape.rank() >= 2, "init", [&] { return str(name, " initialisation is for matrices, got ", shape); });
  double window = 1;
  for (int a = 2; a < shape.rank(); ++a) window *= static_cast<double>(shape[a]);
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

// By inversion: x with Phi(x) = u of the normal distribution's part within 2 deviations, found by bisection and so
// without tables. u from the uniform kernel, in f64.
Tensor truncated(const Shape& shape, double deviation, RandomKey key, DType dtype) {
  Tensor u = empty(shape, DType::f64);
  backend(kCpu).random.uniform(0, 1, key, u);
  std::vector<double> values = u.to_vector<double>();
  const auto below = [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); };
  const double first = below(-2), last = below(2);
  for (double& v : values) {
    const double wanted = first + v * (last - first);
    double low = -2, high = 2;
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (below(middle) < wanted ? low : high) = middle;
    }
    v = deviation * (low + high) / 2;
  }
  return from_vector(values, shape).to(dtype);
}

// The Q of a normal matrix, each column with the sign of R's diagonal, is uniformly distributed (Mezzadri 2007).
Tensor orthogonal_matrix(const Shape& shape, double gain, RandomKey key, DType dtype) {
  check(shape.rank() >= 2, "init", [&] { return str("orthogonal initialisation is for matrices, got ", shape); });
  const NoGrad off;
  const int64_t rows = shape[0], columns = rows == 0 ? 0 : numel(shape) / rows;
  const Tensor normal = randn({std::max(rows, columns), std::min(rows, columns)}, key, DType::f64);
  const QAndR parts = qr(normal);
  const Tensor diagonal = sum(mul(parts.r, eye(normal.dim(1), DType::f64)), {0}, true);
  const Tensor one = braid::ones({}, DType::f64);
  const Tensor q = mul(parts.q, where(lt(diagonal, 0.0), neg(one), one));
  return reshape(contiguous(scale(rows < columns ? transpose(q) : q, gain)), shape).to(dtype);
}

}  // namespace

Init Init::named(const std::string& name) {
  const std::pair<const char*, Init> all[] = {{"none", none()},
                                              {"zeros", zeros()},
                                              {"ones", ones()},
                                              {"normal", normal(0.02)},
                                              {"truncated_normal", truncated_normal(0.02)},
                                              {"xavier_uniform", xavier_uniform()},
                                              {"xavier_normal", xavier_normal()},
                                              {"kaiming_uniform", kaiming_uniform()},
                                              {"kaiming_normal", kaiming_normal()},
                                              {"orthogonal", orthogonal()},
                                              {"identity", identity()}};
  std::string list;
  for (const auto& [known, init] : all) {
    if (name == known) return init;
    list += (list.empty() ? "" : ", ") + std::string(known);
  }
  fail(ErrorKind::setting, "unknown initialisation \"" + name + "\"; known: " + list);
}

Tensor Init::make(const Shape& shape, RandomKey key, DType dtype) const {
  if (detail::shape_only) return empty(shape, dtype, kMeta);
  Tensor x = empty(shape, dtype);
  const auto uniform = [&](double limit) { backend(kCpu).random.uniform(-limit, limit, key, x); };
  const auto with_deviation = [&](double deviation) { backend(kCpu).random.normal(0, deviation, key, x); };
  switch (kind) {
    case Kind::none:
      break;
    case Kind::constant:
      x.fill(value);
      break;
    case Kind::normal:
      with_deviation(value);
      break;
    case Kind::xavier_uniform: {
      const Fans f = fans("Xavier", shape);
      uniform(value * std::sqrt(6.0 / (f.in + f.out)));
      break;
    }
    case Kind::xavier_normal: {
      const Fans f = fans("Xavier", shape);
      with_deviation(value * std::sqrt(2.0 / (f.in + f.out)));
      break;
    }
    case Kind::kaiming_uniform: {
      const Fans f = fans("Kaiming", shape);
      uniform(value * std::sqrt(3.0 / (fan_out ? f.out : f.in)));
      break;
    }
    case Kind::kaiming_normal: {
      const Fans f = fans("Kaiming", shape);
      with_deviation(value / std::sqrt(fan_out ? f.out : f.in));
      break;
    }
    case Kind::truncated_normal:
      return truncated(shape, value, key, dtype);
    case Kind::orthogonal:
      return orthogonal_matrix(shape, value, key, dtype);
    case Kind::identity: {
      check(shape.rank() == 2, "init", [&] { return str("identity initialisation is for matrices, got ", shape); });
      const int64_t n = std::min(shape[0], shape[1]);
      x.fill(0);
      if (n > 0) {
        Tensor corner = x.sliced(0, 0, n).sliced(1, 0, n);
        corner.copy_(eye(n, dtype));
      }
      break;
    }
  }
  return x;
}

}  // namespace braid::nn
