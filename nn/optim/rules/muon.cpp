// W (R, C):   m <- mu m + g,   u = g + mu m or m,   W <- W - lr (scale O + wd W),   O = N(NS(u))
//
//   NS   X = u / |u|_F; `steps` times: A = X X^T, X <- a X + (b A + c A A) X      with R <= C, else of the transpose
//   N    O, or O D, or D O, |O|_F / |O D|_F times it      D diagonal: 1 / |column| or 1 / |row|
//
// Each step maps a singular value s to a s + b s^3 + c s^5: 3.44 s where s is small, and near 1 a value of
// [0.68, 1.21]. These coefficients reach 1 for no s, but lift small ones the fastest.
#include "braid/nn/optim/rules/muon.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "braid/autograd/ops.h"
#include "braid/nn/optim/registry.h"

namespace braid::nn {

namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kShortest = 1e-10;  // length that is divided by: the squares of f32 vanish below 1e-19

}  // namespace

double muon_scale(MuonOptions::Scale scale, int64_t rows, int64_t columns) {
  const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
  return scale == MuonOptions::Scale::rms ? 0.2 * std::sqrt(std::max(r, c)) : std::sqrt(std::max(1.0, r / c));
}

Tensor orthogonalised(const Tensor& u, DType type, int64_t steps) {
  if (u.numel() == 0) return u;
  const NoGrad off;
  const bool tall = u.dim(0) > u.dim(1);
  Tensor x = tall ? u.transposed().contiguous() : u.contiguous();  // (R, C), R <= C
  // Divided by the largest element first, and in u's type, so that neither an element nor its square overflows or
  // vanishes. 0 / smallest = 0.
  constexpr double smallest = std::numeric_limits<float>::min(), smallest_f64 = std::numeric_limits<double>::min();
  const Tensor least = full({}, u.dtype() == DType::f64 ? smallest_f64 : smallest, u.dtype(), u.device());
  x = (x / maximum(max(abs(x).reshaped({x.numel()}), 0), least)).to(type);
  x = x / maximum(sqrt(sum(square(x))), full({}, smallest, type, u.device()));
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor a = linear(x, x);                // X X^T (R, R)
    const Tensor b = a * kB + linear(a, a) * kC;  // A is symmetric: A A = A A^T
    x = x * kA + matmul(b, x);
  }
  return (tall ? x.transposed().contiguous() : x).to(u.dtype());
}

Tensor normalised(const Tensor& o, MuonOptions::Normalise how) {
  using enum MuonOptions::Normalise;
  if (how == none || o.numel() == 0) return o;
  const NoGrad off;
  const Tensor least = full({}, kShortest, o.dtype(), o.device());
  const auto length = [&](const Tensor& x, Axes axes) { return maximum(sqrt(sum(square(x), axes, true)), least); };
  Tensor n = o;
  if (how != rows) n = n / length(n, {0});
  if (how != columns) n = n / length(n, {1});
  return n * (length(o, {0, 1}) / length(n, {0, 1}));
}

Muon::Muon(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
    : AdamW(std::move(parameters), options, false, matrix_suffixes(options)) {
  const MuonOptions& o = options.muon;
  check_setting(o.momentum >= 0 && o.momentum < 1, "muon.momentum", o.momentum, "at least 0 and below 1");
  check_setting(o.steps >= 1, "muon.steps", static_cast<double>(o.steps), "at least 1");
  check_setting(o.heads >= 0, "muon.heads", static_cast<double>(o.heads), "at least 0");
}

// scale O of a complete matrix, part by part.
Tensor Muon::direction(const Tensor& u, const std::string& name) const {
  const MuonOptions& muon = options().muon;
  const std::vector<MatrixPart> parts = matrix_parts(matrices().rule(name), u.shape(), muon.heads);
  const auto of_part = [&](const Tensor& part) {
    const Tensor o = orthogonalised(part, muon.bf16 ? DType::bf16 : part.dtype(), muon.steps);
    return normalised(o, muon.normalise) * muon_scale(muon.scale, part.dim(0), part.dim(1));
  };
  if (parts.size() == 1) return of_part(u);
  Tensor made = empty_like(u);
  for (const MatrixPart& part : parts)
    made.sliced(part.axis, part.begin, part.end).copy_(of_part(u.sliced(part.axis, part.begin, part.end)));
  return made;
}

// The matrices of several ranks come last: all are gathered, then each rank works on its own, then all are scattered.
void Muon::update_matrices(const std::vector<Item>& items, const Tensor& scalars) {
  const NoGrad off;
  const MuonOptions& o = options().muon;
  struct Shared {
    const Item* item;
    Tensor shard, whole;
  };
  std::vector<Shared> shared;
  const auto apply = [&](const Item& item, const Tensor& direction) {
    Tensor parameter = item.parameter;
    const DType type = direction.dtype();
    const Tensor p = parameter.to(type), lr = scalars.sliced(0, 0, 1).squeezed(0).to(type);
    parameter.copy_(p - (direction + p * item.weight_decay) * lr);
  };
  for (const Item& item : items) {
    Tensor m = item.state[0];
    const Tensor g = item.gradient.to(m.dtype()) * scalars.sliced(0, 1, 2).squeezed(0).to(m.dtype());
    m.copy_(m * o.momentum + g);
    const Tensor u = o.nesterov ? g + m * o.momentum : m;
    const std::string name(item.name);
    if (matrices().is_sharded(name)) {
      shared.push_back({&item, u, matrices().gather(name, u)});
    } else {
      apply(item, direction(u, name));
    }
  }
  for (Shared& s : shared)
    if (s.whole) s.whole = direction(s.whole, std::string(s.item->name));
  for (Shared& s : shared)
    apply(*s.item, matrices().scatter(std::string(s.item->name), std::exchange(s.whole, Tensor()), s.shard));
}

OptimizerRule muon_rule() { return optimizer_rule<Muon>("muon"); }

}  // namespace braid::nn
