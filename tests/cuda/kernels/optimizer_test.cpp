// Updates of lists of tensors on the GPU, and recorded ones.

#include "braid/autograd/record.h"
#include "braid/nn/optim/registry.h"
#include "braid/nn/optim/rules/adamw.h"
#include "braid/tensor/graph.h"
#include "braid/tensor/kernels/update_rules.h"
#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

// More tensors than a launch takes, sizes around chunks and vectors; then some of each type.
std::vector<std::pair<DType, int64_t>> many_tensors() {
  std::vector<std::pair<DType, int64_t>> all;
  const int64_t sizes[] = {0, 1, 7, 8, 33, 2100, 8192, 8193};
  for (int i = 0; i < 67; ++i) all.push_back({DType::f32, sizes[i % 5]});
  for (DType t : kFloats) {
    for (int64_t n : sizes) all.push_back({t, n});
  }
  return all;
}

// Updates in place; together or one after the other.
void update(UpdateRule rule, const UpdateStep& step, bool together = true) {
  const auto& run = backend(step.scalars.device()).optimizer.update;
  if (together) return run(rule, step);
  for (const auto& item : step.items) run(rule, {{item}, step.constants, step.scalars});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_optimisers)

BOOST_AUTO_TEST_CASE(lists_of_every_type_and_size) {
  std::vector<Tensor> inputs{from_values({0.01, 0.5, 3, 7}, {4}, DType::f64)};
  uint64_t stream = 1;
  for (auto [type, n] : many_tensors()) {
    inputs.push_back(random_tensor({n}, stream++, type));
    inputs.push_back(random_tensor({n}, stream++, type));
    inputs.push_back(random_tensor({n}, stream++, accumulate_type(type)));
    inputs.push_back(random_tensor({n}, stream++, accumulate_type(type), 0, 1));
  }
  for (bool other : {false, true}) {  // Adam, and descent without momentum
    std::vector<Tensor> alone;
    for (bool together : {true, false}) {
      auto run = [&](const std::vector<Tensor>& in) {
        UpdateStep adamw{{}, {0.9, 0.95, 1e-8, other ? 1.0 : 0.0}, in[0]}, sgd{{}, {0.9}, in[0]};
        std::vector<Tensor> out;
        for (size_t i = 1; i < in.size(); i += 4) {
          const double decay = i % 3 == 0 ? 0.1 : 0;
          Tensor p = copy_of(in[i]), q = copy_of(in[i]), m = copy_of(in[i + 2]), v = copy_of(in[i + 3]),
                 u = other ? Tensor() : copy_of(in[i + 2]);
          adamw.items.push_back({p, in[i + 1], {m, v}, decay});
          sgd.items.push_back({q, in[i + 1], {u}, decay});
          out.insert(out.end(), {p, m, v, q});
          if (u) out.push_back(u);
        }
        for (int repeat = 0; repeat < 2; ++repeat) {
          update(UpdateRule::adamw, adamw, together);
          update(other ? UpdateRule::sgd : UpdateRule::momentum, sgd, together);
        }
        return out;
      };
      // Results near zero came from terms near one.
      check_on_gpu(run, inputs, 0x1p-8, other, 1);
      std::vector<Tensor> there;
      for (const Tensor& x : inputs) there.push_back(x.to(kGpu));
      std::vector<Tensor> got = run(there);
      if (alone.empty()) alone = got;
      for (size_t i = 0; i < got.size(); ++i) BOOST_TEST(same_bits(got[i], alone[i]));
    }
  }
}

// f32 parameters with copies in 16 bits, more than a launch takes: the bits of f32 gradients and of a cast of the
// result.
BOOST_AUTO_TEST_CASE(narrow_gradients_and_copies) {
  const Tensor scalars = from_values({0.01, 0.5, 3, 7}, {4}, DType::f64).to(kGpu);
  for (UpdateRule rule : {UpdateRule::adamw, UpdateRule::momentum, UpdateRule::sgd}) {
    for (DType narrow : {DType::bf16, DType::f16}) {
      UpdateStep plain{{}, {0.9, 0.95, 1e-8, 0}, scalars}, copying = plain;
      uint64_t stream = 1;
      for (int i = 0; i < 66; ++i) {
        const int64_t n = std::vector<int64_t>{1, 8, 33, 2100, 8193}[i % 5 * (i % 11 == 0)];
        const Tensor p = random_tensor({n}, stream++), g = random_tensor({n}, stream++, narrow);
        const Tensor m = random_tensor({n}, stream++), v = random_tensor({n}, stream++, DType::f32, 0, 1);
        for (UpdateStep* step : {&plain, &copying}) {
          const bool copies = step == &copying;
          const DType type = copies && i % 2 == 0 ? narrow : DType::f32;
          step->items.push_back({p.to(kGpu),
                                 g.to(type).to(kGpu),
                                 {m.to(kGpu), v.to(kGpu)},
                                 0.1,
                                 copies ? empty({n}, narrow, kGpu) : Tensor()});
        }
      }
      update(rule, plain);
      update(rule, copying);
      for (size_t i = 0; i < plain.items.size(); ++i) {
        const auto &a = plain.items[i], &b = copying.items[i];
        BOOST_TEST(same_bits(a.parameter, b.parameter));
        for (size_t s = 0; s < 2; ++s) BOOST_TEST(same_bits(a.state[s], b.state[s]));
        BOOST_TEST(same_bits(a.parameter.to(narrow), b.copy));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(one_tensor_of_each_type) {
  for (DType t : kFloats) {
    for (int64_t n : {1, 7, 8, 33, 2100}) {
      for (bool coupled : {false, true}) {
        BOOST_TEST_CONTEXT(str(t) << " " << n << (coupled ? " coupled" : "")) {
          check_on_gpu(
              [coupled](const auto& in) {
                Tensor p = copy_of(in[0]), q = copy_of(in[0]), m = copy_of(in[2]), v = copy_of(in[3]),
                       u = copy_of(in[2]);
                const UpdateRule descent = coupled ? UpdateRule::sgd : UpdateRule::momentum;
                for (int step = 0; step < 3; ++step) {
                  update(UpdateRule::adamw, {{{p, in[1], {m, v}, 0.1}}, {0.9, 0.95, 1e-8, coupled ? 1.0 : 0.0}, in[4]});
                  update(descent, {{{q, in[1], {u}, 0.01}}, {0.9}, in[4]});
                }
                return std::vector{p, m, v, q, u};
              },
              {random_tensor({n}, 1, t), random_tensor({n}, 2, t), random_tensor({n}, 3, accumulate_type(t)),
               random_tensor({n}, 4, accumulate_type(t), 0, 1), from_values({0.01, 0.5, 3, 7}, {4}, DType::f64)},
              tolerance_of(t), n == 33);
        }
      }
    }
  }
}

// An update that was recorded is replayed with the numbers of each later one.
BOOST_AUTO_TEST_CASE(recorded_steps) {
  using nn::NamedTensor;
  for (const char* name : {"adamw", "adam", "sgd"}) {
    auto parameters = [] {
      std::vector<NamedTensor> all;
      for (int i = 0; i < 70; ++i) {
        NamedTensor p{"p" + std::to_string(i), random_tensor({3, 1 + i % 5}, static_cast<uint64_t>(i), DType::f32)};
        p.value = p.value.to(kGpu);
        require_grad(p.value);
        set_grad(p.value, random_tensor(p.value.shape(), 100 + static_cast<uint64_t>(i), DType::f32).to(kGpu));
        all.push_back(p);
      }
      return all;
    };
    const nn::OptimizerOptions options{.name = name, .momentum = 0.9};
    std::vector<NamedTensor> each = parameters(), replayed = parameters();
    const auto stepping = nn::make_optimizer(each, options), replaying = nn::make_optimizer(replayed, options);
    stepping->step(0.1);
    replaying->step(0.1);
    Graph update(kGpu, [&] { replaying->apply(); });
    BOOST_TEST(same_bits(each[0].value, replayed[0].value));  // recorded is not done
    for (double rate : {0.05, 0.02, 0.0, 0.3}) {
      stepping->step(rate, 1 - rate);
      replaying->prepare(rate, 1 - rate);
      update.replay();
    }
    BOOST_TEST(replaying->steps() == 5);
    std::vector<NamedTensor> want = stepping->state(), got = replaying->state();
    want.insert(want.end(), each.begin(), each.end());
    got.insert(got.end(), replayed.begin(), replayed.end());
    for (size_t i = 0; i < want.size(); ++i) BOOST_TEST(same_bits(got[i].value, want[i].value), want[i].name);
  }
}

BOOST_AUTO_TEST_CASE(one_device_for_all) {
  nn::NamedTensor a{"a", zeros({2})}, b{"b", zeros({2}).to(kGpu)};
  require_grad(a.value);
  require_grad(b.value);
  BOOST_TEST(throws_with([&] { nn::AdamW({a, b}, {}); }, "b is on cuda:0, but a on cpu; all parameters must be"));
}

BOOST_AUTO_TEST_SUITE_END()
