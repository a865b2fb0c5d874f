// The traced cost of a step against what a step takes: memory by use, FLOPs, micro-batches, what a trace leaves behind.
#include "braid/models/cost/trace.h"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>

#include "braid/autograd.h"
#include "braid/models/registry.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "braid/models/training/preferences.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/attention/variant.h"
#include "braid/tensor/kernels/kernel_meter.h"
#include "braid/tensor/memory.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(trace)

namespace {

using test::throws_with;

struct Variant {
  const char* preset;
  SettingTexts settings;
};
std::unique_ptr<const ModelSpec> spec_of(const Variant& v) { return configure_model(v.preset, v.settings); }

SettingTexts joined(SettingTexts a, const SettingTexts& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
const SettingTexts text = {{"dim", "64"}, {"n_layer", "3"}, {"n_head", "8"}, {"vocab_size", "50"}};
const SettingTexts image = {{"hidden_size", "64"},      {"num_attention_heads", "4"}, {"intermediate_size", "256"},
                            {"num_hidden_layers", "2"}, {"image_size", "16"},         {"patch_size", "2"}};
const SettingTexts pair = {{"hidden_size", "64"},
                           {"num_attention_heads", "4"},
                           {"intermediate_size", "256"},
                           {"max_source_length", "48"},
                           {"max_target_length", "32"}};

// The same step as trace_step(), with values, on the real CPU.
TrainingMemory measured(const ModelSpec& spec, const TrainingSetup& setup) {
  const MemoryByUse before = memory_by_use(kCpu);
  const dist::ProcessMesh mesh = dist::counting_mesh(setup.mesh, setup.rank);
  std::unique_ptr<Model> model;
  {
    const MemoryScope scope(MemoryUse::weights);
    model = spec.make({1, 0}, mesh);
    if (setup.lora) add_lora(*model, *setup.lora, {}, mesh);
  }
  model->set_recompute(setup.recompute);
  model->set_dropout(setup.dropout);
  model->set_z_loss(setup.z_loss);
  Trainer trainer(*model, setup.optimizer, 1.0, mesh, setup.compute);
  std::vector<Batch> batches;
  for (const int64_t n : setup.samples) batches.push_back(model->blank_batch(n, setup.seq_len));
  reset_peak_memory(kCpu);
  trainer.forward_backward(batches);
  trainer.apply(1e-3);
  const MemoryByUse after = memory_by_use(kCpu);
  const auto of = [&](MemoryUse use) {
    return static_cast<double>(after.at_peak_of(use) - before.current[static_cast<size_t>(use)]);
  };
  return {of(MemoryUse::weights), of(MemoryUse::gradients), of(MemoryUse::optimizer), of(MemoryUse::activations),
          of(MemoryUse::workspace) + of(MemoryUse::other)};
}

void check_memory(const Variant& v, const TrainingSetup& setup) {
  const auto spec = spec_of(v);
  const TrainingMemory real = measured(*spec, setup), traced = trace_step(*spec, setup).memory;
  BOOST_TEST_CONTEXT(v.preset << " " << (v.settings.empty() ? "" : v.settings.back().first) << " " << str(setup.compute)
                              << " ranks " << setup.mesh.ranks() << " T=" << setup.seq_len << " recompute="
                              << setup.recompute << ", working " << real.working << " and " << traced.working) {
    BOOST_TEST(traced.weights == real.weights);
    BOOST_TEST(traced.gradients == real.gradients);
    BOOST_TEST(traced.optimizer == real.optimizer);
    BOOST_TEST(traced.activations == real.activations);
    BOOST_TEST(std::fabs(traced.total() / real.total() - 1) < 5e-3);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(memory_is_what_the_worst_moment_of_a_step_takes) {
  const SettingTexts grouped = {{"n_kv_head", "2"}, {"tie_word_embeddings", "true"}, {"use_linear_bias", "true"}};
  const Variant variants[] = {
      {"dcformer-tiny", text},
      {"transformer-tiny", text},
      {"dcpythia-tiny", text},
      {"pythia-tiny", text},
      {"transformer-tiny", joined(text, grouped)},
      {"dcformer-tiny", joined(text, {{"n_kv_head", "1"}, {"hidden_act", "quick_gelu"}})},
      {"dcformer-tiny", joined(text, {{"mgate", "true"}, {"mgate_dim", "4"}})},
      {"dcformer-tiny", joined(text, {{"profile.rank", "0"}, {"profile.key_side", "false"}})},
      {"dcformer-tiny", joined(text, {{"attention", "diff-v2,gated,xsa"}, {"compose_layers", "last:1"}})},
      {"transformer-tiny", joined(text, {{"attention", "knocking,gated-head"}, {"attention_layers", "first:1"}})},
      {"dc-vit-28", image},
      {"vit-28", image},
      {"vit-28", joined(image, {{"hidden_act", "quick_gelu"}})},
      {"dc-vit-28", joined(image, {{"pool_type", "tok"}, {"posemb", "learn"}})},
      {"dc-vit-28", joined(image, {{"image_size", "32"}, {"patch_size", "4"}, {"stem_channels", "48,32"}})},
      {"dc-vit-28", joined(image, {{"hidden_dropout_prob", "0.1"}, {"compose_dropout", "0.1"}})},
      {"dc-vit-28", joined(image, {{"compose_layers", "0"}})},
      {"dc-seq2seq-tiny", pair},
      {"seq2seq-tiny", pair},
      {"dc-seq2seq-tiny", joined(pair, {{"profile.rank", "4"}, {"profile.key_side", "false"}})},
  };
  for (const Variant& v : variants)
    for (const int64_t T : test::less_under_tsan<std::vector<int64_t>>({48, 320}, {48}))
      for (const bool recompute : {false, true})
        for (const DType compute : {DType::f32, DType::bf16})
          check_memory(v, {.samples = {2, 2}, .seq_len = T, .compute = compute, .recompute = recompute});
  // The convolution of scores takes buffers of oneDNN, which a trace does not know.
  for (const nn::AttentionVariantRule& rule : nn::attention_variants())
    for (const bool recompute : rule.earlier_queries > 0 ? std::vector<bool>() : std::vector<bool>{false, true})
      check_memory({"transformer-tiny", joined(text, {{"attention", rule.name}})},
                   {.samples = {2, 2}, .seq_len = 48, .recompute = recompute});
  for (const Variant& v : {Variant{"dcformer-tiny", text}, Variant{"pythia-tiny", text}, Variant{"seq2seq-tiny", pair}})
    for (const bool recompute : {false, true})
      check_memory(v, {.samples = {2, 2}, .seq_len = 64, .recompute = recompute, .dropout = 0.1});
  check_memory({"dcformer-tiny", joined(text, {{"logit_softcap", "5"}})},
               {.samples = {2, 2}, .seq_len = 64, .z_loss = 0.1});
  nn::OptimizerOptions sgd;
  sgd.name = "sgd", sgd.momentum = 0;
  check_memory({"dcformer-tiny", text}, {.samples = {4}, .seq_len = 64, .optimizer = sgd});
  nn::OptimizerOptions frozen;
  frozen.groups = {nn::parse_group("* frozen"), nn::parse_group("*.lora_?.weight trained")};
  check_memory({"dcformer-tiny", text},
               {.samples = {4}, .seq_len = 64, .optimizer = frozen, .lora = LoraOptions{.rank = 3}});
}

// Real kernels on one rank of a mesh whose other ranks send nothing: the values are none, the memory is that of a rank.
BOOST_AUTO_TEST_CASE(memory_of_a_rank_is_what_it_takes) {
  const auto grouped = [](const char* kv_heads) -> Variant {
    return {"transformer-tiny", {{"dim", "48"}, {"n_head", "6"}, {"n_kv_head", kv_heads}, {"n_layer", "2"}}};
  };
  // Each of two ranks reads two of three key/value heads, and repeats them for its three query heads.
  for (const Variant& v : {Variant{"dcformer-tiny", text}, Variant{"dcpythia-tiny", text}, grouped("2"), grouped("3")})
    for (const MeshShape& mesh : {MeshShape{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}})
      for (const int64_t last : {0, 1})
        check_memory(v, {.samples = {2, 2},
                         .seq_len = 64,
                         .mesh = mesh,
                         .rank = {last * (mesh.data - 1), last * (mesh.context - 1), last * (mesh.tensor - 1)}});
}

// What checkpoint.async holds, on the CPU: weights, averages and moments of a rank once more.
BOOST_AUTO_TEST_CASE(copies_of_the_state_are_counted) {
  for (const Variant& v : {Variant{"dcformer-tiny", text}, Variant{"vit-28", image}, Variant{"seq2seq-tiny", pair}})
    for (const MeshShape& mesh : {MeshShape{}, {2, 1, 2}})
      for (const bool average : {false, true}) {
        if (mesh.ranks() > 1 && v.preset != std::string("dcformer-tiny")) continue;
        const auto spec = spec_of(v);
        TrainingSetup setup{
            .seq_len = 32, .compute = DType::bf16, .average = average, .copied_state = true, .mesh = mesh};
        const TrainingMemory traced = trace_step(*spec, setup).memory;
        const dist::ProcessMesh ranks = dist::counting_mesh(mesh, {});
        const std::unique_ptr<Model> model = spec->make({1, 0}, ranks);
        Trainer trainer(*model, {}, 1.0, ranks, DType::bf16);
        if (average) trainer.average_weights(0.5);
        std::vector<Tensor> copies;
        const auto now = [] { return memory_by_use(kCpu).current[static_cast<size_t>(MemoryUse::other)]; };
        const int64_t before = now();
        Snapshot snapshot(trainer, {});
        snapshot.copy_tensors(copies);
        BOOST_TEST(static_cast<double>(now() - before) == traced.copied_state);
        Snapshot(trainer, {}).copy_tensors(copies);  // into the same memory
        BOOST_TEST(static_cast<double>(now() - before) == traced.copied_state);
        setup.gpu = true;
        const TrainingMemory gpu = trace_step(*spec, setup).memory;
        BOOST_TEST(gpu.copied_state == traced.copied_state);
        setup.copied_state = false;
        BOOST_TEST(gpu.total() == trace_step(*spec, setup).memory.total());
        setup.gpu = false;
        BOOST_TEST(traced.total() == trace_step(*spec, setup).memory.total() + traced.copied_state);
      }
}

BOOST_AUTO_TEST_CASE(micro_batches_in_the_middle_are_counted_and_not_run) {
  const auto spec = spec_of({"dcformer-tiny", text});
  TrainingSetup setup{.samples = {2, 2, 2, 2, 2}, .seq_len = 40, .mesh = {2, 1, 2}};
  const StepCost few = trace_step(*spec, setup);
  setup.samples.back() = 3, setup.samples[0] = 1;  // these are run
  const StepCost all = trace_step(*spec, setup);
  BOOST_TEST(few.flops.total() == all.flops.total());
  BOOST_TEST(few.volume.total() == all.volume.total());
  BOOST_TEST(few.volume.world.bytes == all.volume.world.bytes, boost::test_tools::per_element());
  setup.samples = {2}, setup.accumulate = 5;
  const StepCost repeated = trace_step(*spec, setup);
  BOOST_TEST(repeated.flops.total() == few.flops.total());
  BOOST_TEST(repeated.volume.total() == few.volume.total());
  BOOST_TEST(repeated.memory.total() == few.memory.total());
  setup.accumulate = 4;
  const double batch = few.memory.total() - trace_step(*spec, setup).memory.total();  // of one micro-batch
  setup.accumulate = 1'000'000'000;
  BOOST_TEST(trace_step(*spec, setup).memory.total() == few.memory.total() + (1e9 - 5) * batch);
}

// Under ulimit -v and where the system does not overcommit, an area is smaller.
BOOST_AUTO_TEST_CASE(a_trace_needs_little_address_space) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  BOOST_TEST_MESSAGE("skipped: the sanitizer takes address space of its own");
#else
  const auto spec = spec_of({"dcformer-tiny", text});
  const TrainingSetup setup{.samples = {2}, .seq_len = 40};
  const double expected = trace_step(*spec, setup).memory.total();
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  BOOST_REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit limit = before;
  limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (int64_t{1} << 30));
  BOOST_REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  double limited = 0;
  std::string error;
  try {
    limited = trace_step(*spec, setup).memory.total();
  } catch (const Error& e) {
    error = e.what();
  }
  BOOST_REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  BOOST_TEST(error == "");
  BOOST_TEST(limited == expected);
#endif
}

// Beyond 2^20 tokens samples are counted and not run.
BOOST_AUTO_TEST_CASE(the_cost_of_a_huge_batch_is_affine_in_its_samples) {
  const auto spec = spec_of({"dcformer-tiny", text});
  const auto cost = [&](int64_t samples) { return trace_step(*spec, {.samples = {samples}, .seq_len = 128}); };
  const StepCost most = cost(8192), half = cost(4096), double_size = cost(16384);  // 2^20 tokens, half, twice as many
  BOOST_TEST(double_size.flops.total() == 2 * most.flops.total());
  BOOST_TEST(double_size.memory.weights == most.memory.weights);
  BOOST_TEST(most.memory.total() - half.memory.total() == (double_size.memory.total() - most.memory.total()) / 2);
  const StepCost quarter = cost(2048);  // affine below it, where all is run
  BOOST_TEST(most.memory.total() - half.memory.total() == 2 * (half.memory.total() - quarter.memory.total()));
  BOOST_TEST(trace_step(*spec, {.samples = {1'000'000'000}, .seq_len = 128}).memory.total() > 1e14);
}

BOOST_AUTO_TEST_CASE(a_gpu_keeps_more_and_holds_scores) {
  const auto spec = spec_of({"dcformer-tiny", text});
  TrainingSetup setup{.samples = {2}, .seq_len = 128};
  const TrainingMemory cpu = trace_step(*spec, setup).memory;
  setup.gpu = true;
  const TrainingMemory gpu = trace_step(*spec, setup).memory;
  BOOST_TEST(gpu.activations > cpu.activations);
  BOOST_TEST(gpu.weights == cpu.weights);
  const double scores = 3.0 * 2 * 128 * 128 * 8 * 4;
  setup.attention_workspace = 4096;
  BOOST_TEST(gpu.working - trace_step(*spec, setup).memory.working <= scores - 4096);
  BOOST_TEST(gpu.working > scores);
}

// FLOPs by hand: tests/models/families/*. Every product has two more in the backward pass, attention counts twice, also
// where it runs as ops, which compute scores once more.
BOOST_AUTO_TEST_CASE(the_backward_pass_costs_twice_the_forward_pass) {
  for (const nn::AttentionVariantRule& rule : nn::attention_variants()) {
    const auto spec = spec_of({"transformer-tiny", joined(text, {{"attention", rule.name}})});
    const Batch batch = blank_batch(*spec, 1, 40);
    BOOST_TEST(training_flops(*spec, batch).total() == 3 * forward_flops(*spec, batch).total(), rule.name);
  }
  const SettingTexts capped = joined(text, {{"attention_softcap", "5"}});
  for (const Variant& v :
       {Variant{"dcformer-tiny", text}, Variant{"pythia-tiny", text}, Variant{"dc-seq2seq-tiny", pair},
        Variant{"dcformer-tiny", capped}, Variant{"transformer-tiny", joined(capped, {{"window_size", "4"}})},
        Variant{"transformer-tiny", joined(text, {{"attention", "sink"}})},
        Variant{"transformer-tiny", joined(text, {{"attention", "mta"}, {"window_size", "4"}})}}) {
    const auto spec = spec_of(v);
    const Batch batch = blank_batch(*spec, 1, 40);
    const TracedFlops forward = forward_flops(*spec, batch);
    BOOST_TEST(training_flops(*spec, batch).total() == 3 * forward.total(), v.preset);
    if (v.preset == std::string("dc-seq2seq-tiny")) continue;  // recomputes nothing
    const StepCost again = trace_step(*spec, {.seq_len = 40, .recompute = true});
    BOOST_TEST(again.flops.attention == 4 * forward.attention);
    BOOST_TEST(again.flops.total() > 3 * forward.total());
    BOOST_TEST(again.flops.total() <= 4 * forward.total());
  }
}

BOOST_AUTO_TEST_CASE(what_always_recomputes_costs_no_more) {
  const TrainingSetup preferences{.objective = std::make_shared<PreferenceObjective>(PreferenceOptions())};
  const auto costs = [&](const SettingTexts& settings, const TrainingSetup& setup) {
    const auto spec = spec_of({"dcformer-tiny", joined(text, settings)});
    const Batch batch = setup.objective->blank_batch(*spec->make_shape_only(), 1, 40);
    return training_flops(*spec, batch, setup).total() / forward_flops(*spec, batch, setup).total();
  };
  for (const char* residual : {"plain", "mudd", "mhc", "attnres"}) {
    BOOST_TEST(costs({{"residual", residual}}, {}) == 3, residual);
    BOOST_TEST(costs({{"residual", residual}}, preferences) == 3, residual);
  }
}

// What the kernels of a forward pass compute. Where no key is masked it is all that counts, but for scores of earlier
// queries, which a block computes once more.
BOOST_AUTO_TEST_CASE(flops_are_those_of_the_products_where_no_key_is_masked) {
  constexpr int64_t B = 2, T = 24;
  const auto computed = [](const ModelSpec& spec) {
    const std::unique_ptr<Model> model = spec.make({1, 0}, {});
    const Batch batch = model->blank_batch(B, T);
    const NoGrad off;
    double flops = 0;
    for (const KernelCall& call : record_kernel_calls([&] { model->loss_sum(batch); })) flops += call.flops;
    return flops;
  };
  const SettingTexts unmasked = joined(text, {{"profile.causal", "false"}});
  const auto capped = spec_of({"transformer-tiny", joined(unmasked, {{"attention_softcap", "5"}})});
  BOOST_TEST(forward_flops(*capped, blank_batch(*capped, B, T)).total() == computed(*capped));
  for (const nn::AttentionVariantRule& rule : nn::attention_variants()) {
    const auto spec = spec_of({"transformer-tiny", joined(unmasked, {{"attention", rule.name}})});
    const double earlier = 3.0 * B * 2 * 64 * T * static_cast<double>(rule.earlier_queries);  // L B 2 D T of each
    BOOST_TEST(forward_flops(*spec, blank_batch(*spec, B, T)).total() + earlier == computed(*spec), rule.name);
  }
}

BOOST_AUTO_TEST_CASE(a_bound_of_scores_costs_no_flops) {
  const SettingTexts windows = joined(text, {{"window_size", "5"}});
  for (const Variant& v : {Variant{"transformer-tiny", windows},
                           Variant{"dcformer-tiny", joined(windows, {{"profile.static_proj", "true"}})}}) {
    const auto flops = [&](const SettingTexts& more) {
      return forward_flops(*spec_of({v.preset, joined(v.settings, more)}), 40);
    };
    const TracedFlops plain = flops({}), capped = flops({{"attention_softcap", "5"}});
    BOOST_TEST(capped.products == plain.products, v.preset);
    BOOST_TEST(capped.attention == plain.attention, v.preset);
    BOOST_TEST(capped.low_rank == plain.low_rank, v.preset);
    BOOST_TEST(capped.diagonal == plain.diagonal, v.preset);
    BOOST_TEST(capped.static_proj == plain.static_proj, v.preset);
  }
}

BOOST_AUTO_TEST_CASE(attention_within_documents_counts_its_own_keys) {
  const SettingTexts global = joined(text, {{"window_size", "null"}});
  for (const Variant& v :
       {Variant{"dcformer-tiny", global}, Variant{"dcformer-tiny", joined(global, {{"attention_softcap", "5"}})},
        Variant{"transformer-tiny", joined(global, {{"attention", "sink"}})},
        Variant{"transformer-tiny", joined(global, {{"attention", "mta"}})}}) {
    const auto spec = spec_of(v);
    const Batch blank = blank_batch(*spec, 1, 12);
    std::vector<int32_t> places;
    double apart = 0;
    for (const int n : {5, 1, 6}) {
      for (int i = 0; i < n; ++i) places.push_back(i);
      apart += forward_flops(*spec, n).total();
    }
    const Batch documents = text_batch(blank.at("input_ids"), blank.at("targets"), from_vector(places, {1, 12}));
    BOOST_TEST(forward_flops(*spec, documents).total() == apart, v.preset << " " << v.settings.back().second);
  }
}

BOOST_AUTO_TEST_CASE(a_trace_takes_no_memory_and_leaves_nothing) {
  const auto spec = configure_model("dcformer-8b", {});
  release_cached_memory(kCpu);
  reset_peak_memory(kCpu);
  const MemoryStats before = memory_stats(kCpu);
  const StepCost cost = trace_step(*spec, {.samples = {8}, .seq_len = 4096});
  BOOST_TEST(cost.memory.optimizer == 2.0 * 4 * 7926857728);
  BOOST_TEST(memory_stats(kCpu).peak == before.peak);
  BOOST_TEST(memory_stats(kCpu).current == before.current);
  const Tensor x = ones({3});  // the CPU computes again
  BOOST_TEST(sum(x).item() == 3);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_trained_has_no_cost) {
  const auto spec = spec_of({"dcformer-tiny", text});
  BOOST_TEST(throws_with([&] { trace_step(*spec, {.samples = {0}}); }, "found 0 of 1"));
  BOOST_TEST(throws_with([&] { forward_flops(*spec, 0); }, "expected at least one sequence of at least one token"));
  BOOST_TEST(throws_with([&] { trace_step(*spec, {.mesh = {1, 1, 16}}); }, "head"));
  const TraceDevice outer;
  BOOST_TEST(throws_with([&] { const TraceDevice inner; }, "runs on this thread already"));
}

BOOST_AUTO_TEST_SUITE_END()
