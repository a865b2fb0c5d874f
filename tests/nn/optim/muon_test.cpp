// Muon against plain loops in f64: the update, its parts, and the types of its arithmetic.
#include "braid/nn/optim/rules/muon.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/record.h"
#include "braid/nn/attention/attention.h"
#include "braid/nn/attention/cross_attention.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/kernels/backend.h"
#include "tests/nn/optim/plain_matrix.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::nn;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(muon)

namespace {

// Newton-Schulz as published, from the left whatever the shape is.
Matrix newton_schulz(Matrix x, int steps = 5) {
  double norm = 0;
  for (double v : x.x) norm += v * v;
  if (norm > 0)
    for (double& v : x.x) v /= std::sqrt(norm);
  for (int step = 0; step < steps; ++step) {
    const Matrix a = product(x, turned(x)), aa = product(a, a);
    Matrix b = a;
    for (size_t i = 0; i < b.x.size(); ++i) b.x[i] = -4.7750 * a.x[i] + 2.0315 * aa.x[i];
    const Matrix bx = product(b, x);
    for (size_t i = 0; i < x.x.size(); ++i) x.x[i] = 3.4445 * x.x[i] + bx.x[i];
  }
  return x;
}

Matrix part_of(const Matrix& a, const MatrixPart& part) {
  const Matrix b = part.axis == 0 ? a : turned(a);
  const auto from = b.x.begin() + part.begin * b.columns, to = b.x.begin() + part.end * b.columns;
  const Matrix rows{part.end - part.begin, b.columns, {from, to}};
  return part.axis == 0 ? rows : turned(rows);
}

Matrix with_rows_of_length_one(Matrix a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < a.columns; ++j) sum += a.at(i, j) * a.at(i, j);
    for (int64_t j = 0; j < a.columns; ++j) a.at(i, j) /= std::sqrt(sum);
  }
  return a;
}

Matrix with_equal_lengths(const Matrix& o, MuonOptions::Normalise how) {
  using enum MuonOptions::Normalise;
  Matrix n = o;
  if (how == columns || how == both) n = turned(with_rows_of_length_one(turned(n)));
  if (how == rows || how == both) n = with_rows_of_length_one(n);
  const double factor = norm(o) / norm(n);
  for (double& v : n.x) v *= factor;
  return n;
}

NamedTensor leaf(const std::string& name, const Tensor& x) {
  NamedTensor p{name, x};
  require_grad(p.value);
  return p;
}

const std::vector<Shape> kShapes = {{12, 12}, {24, 10}, {7, 31}, {1, 9}, {9, 1}};

}  // namespace

// Matrices, and AdamW for vectors, tensors of rank 3 and what a group says.
BOOST_AUTO_TEST_CASE(updates_follow_the_formula) {
  struct Case {
    bool nesterov;
    MuonOptions::Scale scale;
    double momentum;
    int steps = 5;
    MuonOptions::Normalise normalise = MuonOptions::Normalise::none;
  };
  using enum MuonOptions::Normalise;
  for (const Case& c :
       {Case{true, MuonOptions::Scale::rms, 0.95}, Case{false, MuonOptions::Scale::spectral, 0.8},
        Case{true, MuonOptions::Scale::spectral, 0}, Case{true, MuonOptions::Scale::rms, 0.9, 3, both},
        Case{true, MuonOptions::Scale::rms, 0.9, 1, rows}, Case{true, MuonOptions::Scale::spectral, 0.9, 8, columns}}) {
    OptimizerOptions options{.name = "muon",
                             .beta1 = 0.8,
                             .weight_decay = 0.1,
                             .decay = OptimizerOptions::Decay::matrices,
                             .muon = {.momentum = c.momentum,
                                      .nesterov = c.nesterov,
                                      .scale = c.scale,
                                      .steps = c.steps,
                                      .normalise = c.normalise},
                             .groups = {parse_group("table* update=elements")}};
    OptimizerOptions by_elements = options;
    by_elements.name = "adamw";
    std::vector<NamedTensor> parameters, others, twins;
    for (size_t k = 0; k < kShapes.size(); ++k)
      parameters.push_back(leaf(str("w", k), random_tensor(kShapes[k], k, DType::f64)));
    others = {leaf("table.weight", random_tensor({6, 5}, 20, DType::f64)),
              leaf("norm", random_tensor({7}, 21, DType::f64)),
              leaf("kernel", random_tensor({2, 3, 4}, 22, DType::f64))};
    for (const NamedTensor& p : others) twins.push_back(leaf(p.name, p.value.detach().clone()));
    std::vector<NamedTensor> all = parameters;
    all.insert(all.end(), others.begin(), others.end());
    const auto optimizer = make_optimizer(all, options), adamw = make_optimizer(twins, by_elements);
    std::vector<Matrix> want, momenta;
    for (const NamedTensor& p : parameters) {
      want.push_back(matrix(p.value.detach()));
      momenta.push_back(want.back());
      for (double& v : momenta.back().x) v = 0;
    }
    const double lr = 0.02, factor = 0.5;
    for (uint64_t step = 0; step < 3; ++step) {
      for (size_t k = 0; k < others.size(); ++k) {
        const Tensor g = random_tensor(others[k].value.shape(), 100 * step + 50 + k, DType::f64);
        set_grad(others[k].value, g), set_grad(twins[k].value, g);
      }
      for (size_t k = 0; k < parameters.size(); ++k) {
        const Tensor gradient = random_tensor(kShapes[k], 100 * step + k + 7, DType::f64);
        set_grad(parameters[k].value, gradient);
        const Matrix g = matrix(gradient);
        Matrix &m = momenta[k], u = g;
        for (size_t i = 0; i < u.x.size(); ++i) {
          m.x[i] = c.momentum * m.x[i] + factor * g.x[i];
          u.x[i] = c.nesterov ? factor * g.x[i] + c.momentum * m.x[i] : m.x[i];
        }
        const Matrix o = with_equal_lengths(newton_schulz(u, c.steps), c.normalise);
        const auto R = static_cast<double>(u.rows), C = static_cast<double>(u.columns);
        const double scale =
            c.scale == MuonOptions::Scale::rms ? 0.2 * std::sqrt(std::fmax(R, C)) : std::sqrt(std::fmax(1, R / C));
        for (size_t i = 0; i < u.x.size(); ++i)
          want[k].x[i] = want[k].x[i] * (1 - lr * options.weight_decay) - lr * scale * o.x[i];
      }
      optimizer->step(lr, factor), adamw->step(lr, factor);
    }
    for (size_t k = 0; k < parameters.size(); ++k)
      BOOST_TEST(is_close(parameters[k].value.to_vector<double>(), want[k].x, 1e-13), parameters[k].name);
    for (size_t k = 0; k < others.size(); ++k) BOOST_TEST(is_close(others[k].value, twins[k].value, 0), others[k].name);
    std::vector<std::string> names;
    for (const NamedTensor& s : optimizer->state()) names.push_back(s.name);
    const std::vector<std::string> expected = {
        "steps",       "w0.momentum", "w1.momentum",        "w2.momentum",
        "w3.momentum", "w4.momentum", "table.weight.first", "table.weight.second",
        "norm.first",  "norm.second", "kernel.first",       "kernel.second"};
    BOOST_TEST(names == expected, boost::test_tools::per_element());
    BOOST_TEST(is_close(optimizer->state()[2].value.to_vector<double>(), momenta[1].x, 1e-14));
  }
}

BOOST_AUTO_TEST_CASE(fused_matrices_have_parts) {
  using Parts = std::vector<MatrixPart>;
  const auto parts = [](const ShardRule& rule, const Shape& shape, int64_t heads) {
    return matrix_parts(rule, shape, heads);
  };
  // Five query heads of 2 rows that share one key/value head.
  const ShardRule qkv{.axis = 0, .units = 5, .repeats = 3, .grouped_units = 1, .scores = 2};
  BOOST_TEST((parts(qkv, {14, 3}, 0) == Parts{{0, 0, 10}, {0, 10, 12}, {0, 12, 14}}));
  BOOST_TEST((parts(qkv, {14, 3}, 2) == Parts{{0, 0, 4}, {0, 4, 8}, {0, 8, 10}, {0, 10, 12}, {0, 12, 14}}));
  // Two queries of 3 rows to a head.
  const ShardRule joined{.axis = 0, .units = 2, .repeats = 3, .joined = 2, .scores = 2};
  BOOST_TEST((parts(joined, {24, 3}, 1) == Parts{{0, 0, 6}, {0, 6, 12}, {0, 12, 15}, {0, 15, 18}, {0, 18, 24}}));
  BOOST_TEST((parts({.axis = 0, .units = 0, .repeats = 2}, {8, 3}, 1) == Parts{{0, 0, 4}, {0, 4, 8}}));
  BOOST_TEST((parts({.axis = 1, .units = 4}, {6, 8}, 1) == Parts{{1, 0, 8}}));
  BOOST_TEST((parts({}, {6, 8}, 1) == Parts{{0, 0, 6}}));
  BOOST_TEST((parts(qkv, {15, 3}, 1) == Parts{{0, 0, 15}}));
}

BOOST_AUTO_TEST_CASE(cross_attention_has_heads_of_queries_and_keys) {
  using Parts = std::vector<MatrixPart>;
  const CrossAttention layer({.width = 12, .heads = 3, .compose = false}, RandomKey{1, 0});
  const std::map<std::string, ShardRule> rules = shard_rules(layer);
  const auto parts = [&](const std::string& name, const Shape& shape, int64_t heads) {
    return matrix_parts(rules.at(name), shape, heads);
  };
  BOOST_TEST((parts("wq.weight", {12, 12}, 0) == Parts{{0, 0, 12}}));
  BOOST_TEST((parts("wq.weight", {12, 12}, 1) == Parts{{0, 0, 4}, {0, 4, 8}, {0, 8, 12}}));
  BOOST_TEST((parts("wq.weight", {12, 12}, 2) == Parts{{0, 0, 8}, {0, 8, 12}}));
  BOOST_TEST((parts("wkv.weight", {24, 12}, 0) == Parts{{0, 0, 12}, {0, 12, 24}}));
  BOOST_TEST((parts("wkv.weight", {24, 12}, 1) == Parts{{0, 0, 4}, {0, 4, 8}, {0, 8, 12}, {0, 12, 24}}));
  BOOST_TEST((parts("wkv.weight", {24, 12}, 2) == Parts{{0, 0, 8}, {0, 8, 12}, {0, 12, 24}}));
}

// wqkv of a layer: the rule that the layer declares gives queries, keys and values, and heads.
BOOST_AUTO_TEST_CASE(queries_keys_and_values_are_matrices_of_their_own) {
  for (const int64_t heads : {0, 1, 2}) {
    const Attention layer({.width = 12, .heads = 3, .kv_heads = 1}, RandomKey{1, 0});
    std::map<std::string, ShardRule> rules = shard_rules(layer);
    rules["columns"] = {.axis = 1, .units = 2, .repeats = 2};
    std::vector<NamedTensor> two{parameters(layer)[0], leaf("columns", random_tensor({5, 8}, 3))};
    BOOST_TEST(two[0].name == "wqkv.weight");
    two[0].value = random_tensor({20, 12}, 2, DType::f64);
    two[1].value = random_tensor({5, 8}, 3, DType::f64);
    Muon optimizer({leaf(two[0].name, two[0].value), leaf(two[1].name, two[1].value)},
                   {.weight_decay = 0, .muon = {.momentum = 0, .nesterov = false, .heads = heads}});
    optimizer.set_matrices(std::make_shared<WholeMatrices>(rules));
    for (const NamedTensor& p : optimizer.parameters()) {
      Matrix want = matrix(p.value.detach());
      const Tensor gradient = random_tensor(p.value.shape(), 5, DType::f64);
      set_grad(p.value, gradient);
      const bool queries = p.name == "wqkv.weight";
      std::vector<MatrixPart> parts = {{1, 0, 4}, {1, 4, 8}};
      if (queries) parts = {{0, 0, 12}, {0, 12, 16}, {0, 16, 20}};
      if (queries && heads == 1) parts = {{0, 0, 4}, {0, 4, 8}, {0, 8, 12}, {0, 12, 16}, {0, 16, 20}};
      if (queries && heads == 2) parts = {{0, 0, 8}, {0, 8, 12}, {0, 12, 16}, {0, 16, 20}};
      for (const MatrixPart& part : parts) {
        const Matrix u = part_of(matrix(gradient), part), o = newton_schulz(u);
        const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(u.rows, u.columns)));
        for (int64_t i = 0; i < u.rows; ++i)
          for (int64_t j = 0; j < u.columns; ++j)
            want.at(i + (part.axis == 0 ? part.begin : 0), j + (part.axis == 1 ? part.begin : 0)) -=
                0.1 * scale * o.at(i, j);
      }
      two[queries ? 0 : 1].value = from_vector(want.x, p.value.shape());
    }
    optimizer.step(0.1);
    for (size_t k = 0; k < 2; ++k) BOOST_TEST(is_close(optimizer.parameters()[k].value, two[k].value, 1e-13));
  }
}

// muon.bf16 takes the steps in bf16, and divides u by its largest element before it rounds: also where u itself lies
// beyond bf16.
BOOST_AUTO_TEST_CASE(updates_may_be_orthogonalised_in_bf16) {
  using Case = std::pair<DType, int>;
  for (const auto& [type, power] : {Case{DType::f32, 0}, Case{DType::f32, 100}, Case{DType::f64, 0},
                                    Case{DType::f64, 660}, Case{DType::f64, -146}, Case{DType::f64, -660}}) {
    const Tensor p = random_tensor({24, 10}, 1, type), g = random_tensor({24, 10}, 2, type);
    const NamedTensor w = leaf("w", p.clone());
    Muon optimizer({w}, {.weight_decay = 0, .muon = {.momentum = 0, .bf16 = true}});
    set_grad(w.value, scale(g, std::ldexp(1.0, power)));
    optimizer.step(0.1);
    const Tensor largest = max(abs(g).reshaped({g.numel()}), 0);
    const Tensor o = orthogonalised((g / largest).to(DType::bf16)).to(type);
    BOOST_TEST(is_close(w.value, p - scale(o, 0.1 * 0.2 * std::sqrt(24.0)), type == DType::f32 ? 1e-6 : 1e-14),
               str(type) << " 2^" << power);
    BOOST_TEST(!is_close(w.value, p - scale(orthogonalised(g), 0.1 * 0.2 * std::sqrt(24.0)), 1e-6));
    BOOST_TEST((optimizer.state()[1].value.dtype() == type));
  }
}

// Without a gradient a matrix only decays; NaN stays in the matrix that has it, as with other rules.
BOOST_AUTO_TEST_CASE(zero_and_bad_gradients) {
  NamedTensor a = leaf("a", full({2, 3}, 2, DType::f64)), b = leaf("b", full({2, 3}, 2, DType::f64));
  Muon o({a, b}, {.weight_decay = 0.5});
  set_grad(a.value, zeros({2, 3}, DType::f64));
  set_grad(b.value, full({2, 3}, std::nan(""), DType::f64));
  o.step(0.1);
  BOOST_TEST(is_close(a.value, full({2, 3}, 1.9, DType::f64), 1e-15));
  BOOST_TEST(!all_finite(b.value));
}

BOOST_AUTO_TEST_CASE(sixteen_bit_parameters_and_copies) {
  NamedTensor exact = leaf("w", random_tensor({8, 6}, 1, DType::bf16).to(DType::f64));
  NamedTensor half = leaf("w", exact.value.detach().to(DType::bf16));
  NamedTensor master = leaf("w", exact.value.detach().to(DType::f32)), bias = leaf("b", random_tensor({3}, 2));
  Tensor copy = empty({8, 6}, DType::bf16), of_bias = empty({3}, DType::bf16);
  const OptimizerOptions options{.lr = 0.01};
  Muon reference({exact}, options), narrow({half}, options), mixed({master, bias}, options);
  mixed.set_copies({copy, of_bias});
  const Tensor g = random_tensor({8, 6}, 3, DType::bf16);
  set_grad(exact.value, g.to(DType::f64)), set_grad(half.value, g);
  set_grad(master.value, g), set_grad(bias.value, random_tensor({3}, 4));
  for (Muon* o : {&reference, &narrow, &mixed}) o->step();
  const std::vector<double> want = exact.value.to_vector<double>();
  BOOST_TEST(is_close(half.value.to_vector<double>(), want, 0x1p-8));
  BOOST_TEST(is_close(master.value.to_vector<double>(), want, 1e-6));
  BOOST_TEST((narrow.state()[1].value.dtype() == DType::f32));
  BOOST_TEST(is_close(copy, master.value.detach().to(DType::bf16), 0));
  BOOST_TEST(is_close(of_bias, bias.value.detach().to(DType::bf16), 0));
}

BOOST_AUTO_TEST_CASE(saved_state_continues_bit_for_bit) {
  const Tensor first = random_tensor({5, 4}, 1), vector = random_tensor({4}, 2);
  struct Run {
    NamedTensor w, v;
    Muon optimizer;
    Run(const Tensor& a, const Tensor& b)
        : w(leaf("w", a.detach().clone())), v(leaf("v", b.detach().clone())), optimizer({w, v}, {.lr = 0.01}) {}
    void steps(uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        set_grad(w.value, random_tensor({5, 4}, 10 + i)), set_grad(v.value, random_tensor({4}, 50 + i));
        optimizer.step();
      }
    }
  };
  Run straight(first, vector), before(first, vector);
  straight.steps(0, 6), before.steps(0, 3);
  Run after(before.w.value, before.v.value);
  after.optimizer.load(before.optimizer.state(), "memory");
  after.steps(3, 6);
  BOOST_TEST(is_close(after.w.value, straight.w.value, 0));
  BOOST_TEST(is_close(after.v.value, straight.v.value, 0));
}

BOOST_AUTO_TEST_CASE(settings_are_checked) {
  const NamedTensor a = leaf("a", full({2, 2}, 1));
  const auto fails = [&](const OptimizerOptions& options, const std::string& why) {
    BRAID_CHECK_FAILS(make_optimizer({a}, options), ErrorKind::setting, why);
  };
  fails({.name = "muon", .muon = {.momentum = 1}}, "muon.momentum must be at least 0 and below 1, found 1");
  fails({.name = "muon", .muon = {.steps = 0}}, "muon.steps must be at least 1, found 0");
  fails({.name = "muon", .muon = {.heads = -1}}, "muon.heads must be at least 0, found -1");
  fails({.name = "muon", .beta2 = 1}, "beta2 must be at least 0 and below 1");
  fails({.name = "adamw", .groups = {parse_group("a update=matrix")}},
        "optimizer.groups: 'a update=matrix' needs a rule that updates whole matrices, found adamw");
  BRAID_CHECK_FAILS(parse_muon_scale("big"), ErrorKind::setting, "unknown muon.scale 'big': expected rms or spectral");
  BOOST_TEST((parse_muon_scale("spectral") == MuonOptions::Scale::spectral));
  BRAID_CHECK_FAILS(parse_muon_normalise("all"), ErrorKind::setting,
                    "unknown muon.normalise 'all': expected none, rows, columns or both");
  BOOST_TEST((parse_muon_normalise("columns") == MuonOptions::Normalise::columns));
  const OptimizerOptions muon{.name = "muon", .groups = {parse_group("a* update=elements"), parse_group("ab lr=2")}};
  BOOST_TEST(takes_as_matrix(muon, {"b", full({2, 2}, 1)}));
  BOOST_TEST(!takes_as_matrix(muon, {"ab", full({2, 2}, 1)}));
  BOOST_TEST(!takes_as_matrix(muon, {"b", full({2, 2, 1}, 1)}));
  BOOST_TEST(!takes_as_matrix({.name = "adamw"}, {"b", full({2, 2}, 1)}));
  BOOST_TEST(state_suffixes(muon, {"b", full({2, 2}, 1)}) == std::vector<std::string>{".momentum"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
