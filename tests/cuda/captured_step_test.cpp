// Training steps that are captured once and then replayed have the bits of steps that are launched kernel by kernel,
// whatever happens in between.
#include <algorithm>
#include <set>

#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/model_spec.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/cuda/support.h"
#include "tests/support/temp_folder.h"
#if defined(BRAID_EMULATION)
#include "tests/cuda/emulation/gpu.h"
#endif

using namespace braid;
using namespace braid::test;

namespace {

constexpr int64_t kVocabulary = 30, kLength = 8;

struct Setup {
  const char* name = "f32";
  std::optional<DType> compute = {};  // bf16: with f32 masters
  bool recompute = false;
  int64_t heads = 2, dim = 16;
};

models::DcformerConfig config_of(const Setup& setup) {
  models::DcformerConfig config = models::unresolved_preset("dcformer-tiny");
  config.vocab_size = kVocabulary;
  config.dim = setup.dim;
  config.n_layer = 1;
  config.n_head = setup.heads;
  config.head_dim = 0;
  config.intermediate_size = 24;
  config.window_size = 4;
  config.block_size = kLength;
  config.initializer_std = 0.1;
  config.layer_windows.clear();
  models::resolve(config);
  return config;
}

// Another number of targets counts in every batch.
models::Batch batch(int64_t number, int64_t rows = 2) {
  const auto stream = static_cast<uint64_t>(number);
  Tensor ids = random_ids({rows, kLength}, 2 * stream, 0, kVocabulary);
  Tensor targets = random_ids({rows, kLength}, 2 * stream + 1, -1 - number % 4, kVocabulary);
  return models::text_batch(ids, targets);
}
std::vector<models::Batch> batches(int64_t step) { return {batch(2 * step), batch(2 * step + 1)}; }
double rate(int64_t step) { return 0.01 * static_cast<double>(1 + step % 3); }

models::Dcformer model_on_gpu(const Setup& setup) {
  models::Dcformer model(config_of(setup), {1, 0});
  model.to(kGpu);
  model.set_recompute(setup.recompute);
  return model;
}

class ReadsBack final : public models::Model {
 public:
  explicit ReadsBack(models::Dcformer model) : model_(std::move(model)) {}
  std::unique_ptr<const models::ModelSpec> spec() const override { return model_.spec(); }
  DType dtype() const override { return model_.dtype(); }
  Device device() const override { return model_.device(); }
  void to(DType dtype) override { model_.to(dtype); }
  void to(Device device) override { model_.to(device); }
  Tensor loss_sum(const models::Batch& batch) const override {
    Tensor loss = model_.loss_sum(batch);
    loss.item();
    return loss;
  }
  models::Batch blank_batch(int64_t samples, int64_t seq_len) const override {
    return model_.blank_batch(samples, seq_len);
  }
  int64_t count_targets(const models::Batch& batch) const override { return model_.count_targets(batch); }
  void check_batch(const models::Batch& batch) const override { model_.check_batch(batch); }
  void observe(const models::Batch& batch, const nn::ActivationObserver& observer) const override {
    model_.observe(batch, observer);
  }
  void visit(nn::Visitor& v) const override { model_.visit(v); }

 private:
  models::Dcformer model_;
};

struct Training {
  models::Dcformer model;
  models::Trainer trainer;
  std::vector<models::StepMetrics> results;

  Training(const Setup& setup, bool capture)
      : model(model_on_gpu(setup)), trainer(model, {.weight_decay = 0.1}, 0.5, {}, setup.compute) {
    trainer.capture_steps(capture);
  }
  void step(int64_t number) { step(number, batches(number)); }
  void step(int64_t number, const std::vector<models::Batch>& micro_batches) {
    results.push_back(trainer.step(micro_batches, rate(number)));
  }
  std::vector<nn::NamedTensor> state() const {
    std::vector<nn::NamedTensor> all = trainer.parameters();
    for (const nn::NamedTensor& p : nn::parameters(trainer.model())) all.push_back({"used " + p.name, p.value});
    const std::vector<nn::NamedTensor> moments = trainer.optimizer().state();
    all.insert(all.end(), moments.begin(), moments.end());
    for (nn::NamedTensor& t : all) t.value = t.value.detach().to(kCpu).clone();
    return all;
  }
};

// The same losses and norms so far, the same weights, moments and copies.
void check_equal(const Training& a, const Training& b) {
  BOOST_REQUIRE(a.results.size() == b.results.size());
  for (size_t i = 0; i < a.results.size(); ++i) {
    BOOST_TEST(a.results[i].loss == b.results[i].loss, "loss of step " << i);
    BOOST_TEST(a.results[i].grad_norm == b.results[i].grad_norm, "norm of step " << i);
    BOOST_TEST(a.results[i].tokens == b.results[i].tokens, "tokens of step " << i);
  }
  const std::vector<nn::NamedTensor> left = a.state(), right = b.state();
  BOOST_REQUIRE(left.size() == right.size());
  for (size_t i = 0; i < left.size(); ++i) BOOST_TEST(same_bits(left[i].value, right[i].value), left[i].name);
}

struct Pair {
  Training plain, captured;
  explicit Pair(const Setup& setup = {}) : plain(setup, false), captured(setup, true) {}
  void each(const std::function<void(Training&)>& body) {
    body(plain);
    body(captured);
  }
  ~Pair() { BOOST_TEST(!plain.trainer.replays_steps()); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(captured_step)

BOOST_AUTO_TEST_CASE(has_the_bits_of_a_launched_step) {
  for (const Setup& setup : {Setup{},
                             {"f32, recomputed blocks", {}, true},
                             {"bf16", DType::bf16},
                             {"bf16 on tensor cores, recomputed blocks", DType::bf16, true, 16, 32}}) {
    BOOST_TEST_CONTEXT(setup.name) {
      Pair pair(setup);
      const int64_t steps = setup.heads == 2 ? 6 : 4;
      for (int64_t step = 0; step < steps; ++step) {
        pair.each([&](Training& t) { t.step(step); });
        BOOST_TEST(pair.captured.trainer.replays_steps() == (step > 0), "step " << step);
      }
      check_equal(pair.plain, pair.captured);
      const std::vector<models::StepMetrics>& r = pair.plain.results;
      BOOST_TEST(std::any_of(r.begin(), r.end(), [](const auto& x) { return x.grad_norm > 0.5; }));  // clipped
      BOOST_TEST(std::any_of(r.begin(), r.end(), [&](const auto& x) { return x.tokens != r[0].tokens; }));
    }
  }
}

// After the capture the host calls no kernel of the model or of the optimizer any more.
BOOST_AUTO_TEST_CASE(leaves_nothing_but_its_inputs_to_the_host) {
  static std::set<std::string> called;
  Pair pair;
  std::vector<std::set<std::string>> steps;
  for (int64_t step = 0; step < 3; ++step) {
    pair.plain.step(step);
    called.clear();
    detail::set_kernel_observer({[](const char* kernel) { called.insert(kernel); }, [] {}});
    pair.captured.step(step);
    detail::set_kernel_observer({});
    steps.push_back(called);
  }
  for (const char* kernel : {"matmul", "optimizer_update", "dcmha_forward", "dcmha_backward", "cross_entropy_in_place"})
    BOOST_TEST((steps[0].contains(kernel) && steps[1].contains(kernel) && !steps[2].contains(kernel)), kernel);
  const std::set<std::string> inputs{"transfer", "copy", "fill", "min_max", "synchronize"};
  for (const std::string& kernel : steps[2]) BOOST_TEST(inputs.contains(kernel), kernel);
  check_equal(pair.plain, pair.captured);
}

// Between its halves a step shows its own gradients, and it may be discarded.
BOOST_AUTO_TEST_CASE(a_discarded_step_changes_nothing) {
  Pair pair;
  std::vector<std::vector<nn::NamedTensor>> seen;
  pair.each([&](Training& t) {
    for (int64_t step = 0; step < 3; ++step) t.step(step);
    const std::vector<nn::NamedTensor> before = t.state();
    t.results.push_back(t.trainer.forward_backward(batches(3)));
    seen.emplace_back();
    for (const models::LocalTensor& g : t.trainer.local_gradients()) seen.back().push_back({g.name, g.values.to(kCpu)});
    t.trainer.discard();
    const std::vector<nn::NamedTensor> after = t.state();
    for (size_t i = 0; i < before.size(); ++i) BOOST_TEST(same_bits(before[i].value, after[i].value), before[i].name);
    for (int64_t step = 4; step < 6; ++step) t.step(step);
  });
  BOOST_REQUIRE(seen.size() == 2u);
  for (size_t i = 0; i < seen[0].size(); ++i) BOOST_TEST(same_bits(seen[0][i].value, seen[1][i].value));
  BOOST_TEST(pair.captured.trainer.replays_steps());
  check_equal(pair.plain, pair.captured);
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_a_number_changes_nothing) {
  Pair pair;
  std::vector<std::string> messages;
  pair.each([&](Training& t) {
    for (int64_t step = 0; step < 3; ++step) t.step(step);
    Tensor weight = t.trainer.parameters()[3].value, good = weight.detach().clone();
    weight.fill(NAN);
    const std::vector<nn::NamedTensor> before = t.state();
    try {
      t.step(3);
    } catch (const Error& e) {
      BOOST_TEST((e.kind() == ErrorKind::numerical));
      messages.push_back(e.what());
    }
    const std::vector<nn::NamedTensor> after = t.state();
    for (size_t i = 0; i < before.size(); ++i) BOOST_TEST(same_bits(before[i].value, after[i].value), before[i].name);
    weight.copy_(good);
    for (int64_t step = 3; step < 6; ++step) t.step(step);
  });
  BOOST_REQUIRE(messages.size() == 2u);
  BOOST_TEST(messages[0] == messages[1]);
  const std::string bad = pair.plain.trainer.parameters()[3].name;
  BOOST_TEST(messages[0].find("the weights before step 4 contain NaN or Inf, first in " + bad + "; ") == 0u);
  check_equal(pair.plain, pair.captured);
}

BOOST_AUTO_TEST_CASE(another_shape_begins_anew) {
  Pair pair;
  auto replays = [&] { return pair.captured.trainer.replays_steps(); };
  for (int64_t step = 0; step < 3; ++step) pair.each([&](Training& t) { t.step(step); });
  BOOST_TEST(replays());
  pair.each([](Training& t) { t.step(3, {batch(100, 1), batch(101)}); });  // a smaller batch
  BOOST_TEST(!replays());
  pair.each([](Training& t) { t.step(4, {batch(102), batch(103), batch(104)}); });  // more micro-batches
  BOOST_TEST(!replays());
  for (int64_t step = 5; step < 8; ++step) pair.each([&](Training& t) { t.step(step); });
  BOOST_TEST(replays());
  check_equal(pair.plain, pair.captured);
}

// Which kernels attention within documents launches depends on where they begin: such steps are launched, between
// others that are replayed.
BOOST_AUTO_TEST_CASE(batches_with_documents_are_launched) {
  const auto with_documents = [](int64_t number) {
    models::Batch joined = batch(number);
    std::vector<int32_t> positions;
    for (int64_t i = 0, at = 0; i < 2 * kLength; ++i, ++at) {
      if (i % kLength == 0 || i % kLength == 1 + number % 5) at = 0;
      positions.push_back(static_cast<int32_t>(at));
    }
    return models::text_batch(joined.at("input_ids"), joined.at("targets"), from_vector(positions, {2, kLength}));
  };
  Pair pair;
  for (int64_t step = 0; step < 9; ++step) {
    const bool documents = step == 3 || step == 4 || step == 5;
    pair.each([&](Training& t) {
      if (documents)
        t.step(step, {with_documents(2 * step), with_documents(2 * step + 1)});
      else
        t.step(step);
    });
    BOOST_TEST(pair.captured.trainer.replays_steps() == (step != 0 && !documents && step != 6), "step " << step);
  }
  check_equal(pair.plain, pair.captured);
  Training joined({}, false);  // positions count
  for (int64_t step = 0; step < 4; ++step) joined.step(step);
  BOOST_TEST(joined.results[3].loss != pair.plain.results[3].loss);
}

// Validation between steps, and a state that is loaded into the tensors of a capture.
BOOST_AUTO_TEST_CASE(other_work_between_steps_disturbs_nothing) {
  Pair pair({"bf16", DType::bf16});
  std::vector<double> validation;
  std::vector<std::vector<nn::NamedTensor>> ends;
  pair.each([&](Training& t) {
    TempFolder folder;
    auto save = [](const std::string& path, const std::vector<nn::NamedTensor>& tensors) {
      io::NamedTensors named;
      for (const nn::NamedTensor& x : tensors) named.emplace_back(x.name, x.value);
      io::save_safetensors(path, named);
    };
    for (int64_t step = 0; step < 5; ++step) {
      t.step(step);
      validation.push_back(models::evaluate(t.model, {batch(50, 1), batch(51, 3)}));
      if (step != 2) continue;
      save(folder / "weights", t.trainer.parameters());
      save(folder / "optimizer", t.trainer.optimizer().state());
    }
    ends.push_back(t.state());
    t.trainer.load(io::SafetensorsFile(folder / "weights"), io::SafetensorsFile(folder / "optimizer"));
    for (int64_t step = 3; step < 5; ++step) t.step(step);
    ends.push_back(t.state());
  });
  for (size_t i = 0; i < 5; ++i) BOOST_TEST(validation[i] == validation[i + 5]);
  for (size_t i = 0; i < ends[0].size(); ++i) {
    for (size_t k = 1; k < ends.size(); ++k)
      BOOST_TEST(same_bits(ends[0][i].value, ends[k][i].value), ends[0][i].name << " of " << k);
  }
  BOOST_TEST(pair.captured.trainer.replays_steps());
  check_equal(pair.plain, pair.captured);
}

BOOST_AUTO_TEST_CASE(memory_does_not_grow) {
  Training t({}, true);
  for (int64_t step = 0; step < 3; ++step) t.step(step);
  const MemoryStats before = memory_stats(kGpu);
  const MemoryByUse uses = memory_by_use(kGpu);
  for (int64_t step = 3; step < 8; ++step) t.step(step);
  BOOST_TEST(memory_stats(kGpu).current == before.current);
  BOOST_TEST(memory_stats(kGpu).reserved == before.reserved);
  BOOST_TEST((memory_by_use(kGpu).current == uses.current));
  t.trainer.capture_steps(false);
  BOOST_TEST(!t.trainer.replays_steps());
  BOOST_TEST(memory_stats(kGpu).current < before.current);  // its gradients and inputs
  t.step(8);
}

// Such a model can be trained, but its steps cannot be captured.
BOOST_AUTO_TEST_CASE(a_model_that_reads_values_back_is_named) {
  ReadsBack model(model_on_gpu({}));
  models::Trainer trainer(model, {}, 0.5);
  trainer.capture_steps(true);
  trainer.step(batches(0), rate(0));
  BOOST_TEST(throws_with(
      [&] { trainer.step(batches(1), rate(1)); },
      "values were read back while a graph is captured, but its kernels have not run yet; do it "
      "before or after the capture; a training step that does so cannot be captured (train.graph=false launches it)"));
  trainer.capture_steps(false);
  trainer.step(batches(1), rate(1));
  BOOST_TEST(trainer.optimizer().steps() == 2);
}

BOOST_AUTO_TEST_CASE(has_no_effect_on_the_cpu) {
  models::Dcformer model(config_of({}), {1, 0});
  models::Trainer trainer(model, {}, 0.5);
  trainer.capture_steps(true);
  for (int64_t step = 0; step < 3; ++step) trainer.step(batches(step), rate(step));
  BOOST_TEST(!trainer.replays_steps());
}

#if defined(BRAID_EMULATION)
// The emulated device reuses no memory during a capture, so a capture needs more than a launched step.
BOOST_AUTO_TEST_CASE(without_memory_for_a_capture_steps_are_launched) {
  Pair pair;
  pair.each([](Training& t) { t.step(0); });
  reset_peak_memory(kGpu);
  pair.plain.step(1);
  {
    emulated::OtherGpu gpu;
    gpu->properties.memory = memory_stats(kGpu).peak + 4096;
    pair.captured.step(1);
  }
  for (int64_t step = 2; step < 5; ++step) pair.each([&](Training& t) { t.step(step); });
  BOOST_TEST(!pair.captured.trainer.replays_steps());
  BOOST_TEST(pair.captured.trainer.capture_given_up_reason().starts_with("out of memory on the emulated GPU"));
  check_equal(pair.plain, pair.captured);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
