// The launches and the memory of training steps, by the host code that runs on a GPU. The bounds are the counts of now:
// a change that lowers a count lowers its bound.
#include <boost/test/unit_test.hpp>
#include <map>

#include "tests/cuda/dry/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dry_step)

// Attention of one layer, forward and backward, B = 8, T = 2048.
BOOST_AUTO_TEST_CASE(launches_of_a_layer) {
  struct Row {
    const char *preset, *window;
    int64_t max;
  };
  for (const Row& row : {Row{"dcformer-405m", "null", 52},  // N = 16, d = 64
                         {"dcformer-405m", "256", 23},
                         {"dcformer-2.8b", "null", 118},  // N = 32, d = 80
                         {"dcformer-2.8b", "256", 31},
                         {"transformer-405m", "null", 4}}) {
    DryTraining t({row.preset, 8, 2048, {{"n_layer", "1"}, {"window_size", row.window}}});
    const int64_t launches = count(t.step(), is_attention);
    BOOST_TEST(launches <= row.max, row.preset << ", window " << row.window << ": " << launches << " launches");
    BOOST_TEST_MESSAGE(row.preset << ", window " << row.window << ": " << launches << " launches of attention");
  }
}

// Between the products and attention: one kernel each way makes q, k and v, another one the factors of Compose.
BOOST_AUTO_TEST_CASE(operands_of_attention_are_made_in_one_kernel_each_way) {
  for (const char* preset : {"dcformer-405m", "transformer-405m", "dcpythia-6.9b"}) {
    DryTraining t({preset, 1, 256, {{"n_layer", "1"}}});
    std::map<std::string_view, int> launches;
    for (const DryWork& w : t.step()) ++launches[w.op];
    const bool composes = std::string(preset) != "transformer-405m";
    BOOST_TEST_CONTEXT(preset) {
      BOOST_TEST(launches["split_qkv"] == 1);
      BOOST_TEST(launches["split_qkv_backward"] == (composes ? 2 : 1), "and the sum of the norms' gradients");
      BOOST_TEST(launches["compose_factors"] == composes);
      BOOST_TEST(launches["compose_factors_backward"] == composes);
      BOOST_TEST(launches["rope"] == 0);
    }
  }
}

// A whole step: launches, graph, memory.
BOOST_AUTO_TEST_CASE(launches_and_memory_of_a_step) {
  struct Row {
    DrySetup setup;
    int64_t gpu_gib, launches;
    double in_use_gib, reserved_gib;
  };
  for (const Row& row : {Row{{"dcformer-405m", 8}, 78, 1955, 24.0, 24.8},
                         {{"transformer-405m", 8}, 78, 757, 18.5, 19.3},
                         {{"dcformer-2.8b", 4}, 78, 2977, 65.7, 66.8},
                         {{"transformer-2.8b", 4}, 78, 946, 57.6, 59.6},
                         {{"dcformer-2.8b", 8}, 139, 3793, 90.6, 91.7},
                         {{"dcpythia-6.9b", 1, 2048, {}, true}, 139, 4279, 103.6, 104.5}}) {
    DryTraining t(row.setup, {.memory = row.gpu_gib << 30});
    t.step(), t.step();
    BOOST_TEST(t.dry.counts().captures == 2, row.setup.preset << ": gradients and update are captured");
    t.step();  // the values that a replay reads have new places
    const size_t launches = t.step().size();
    const MemoryStats memory = t.memory();
    BOOST_TEST_CONTEXT(row.setup.preset << " B = " << row.setup.batch << ": " << launches << " launches, in use "
                                        << memory.peak / kGiB << " GiB, reserved " << memory.reserved / kGiB) {
      BOOST_TEST(t.trainer->replays_steps());
      BOOST_TEST(launches <= static_cast<size_t>(row.launches));
      BOOST_TEST(memory.peak <= row.in_use_gib * kGiB);
      BOOST_TEST(memory.reserved <= row.reserved_gib * kGiB);
      BOOST_TEST(t.dry.counts().allocations == 0, "a replayed step allocates nothing");
      BOOST_TEST(count(t.dry.log(), [](const DryWork& w) { return w.replayed; }) > 0.98 * launches);
      BOOST_TEST_MESSAGE(row.setup.preset << " B = " << row.setup.batch << ": " << launches << " launches, in use "
                                          << memory.peak / kGiB << " GiB, reserved " << memory.reserved / kGiB);
    }
  }
}

// GPU memory that the ops of a step read and write, in GB.
BOOST_AUTO_TEST_CASE(bytes_of_the_ops_of_a_step) {
  DryTraining t({"dcformer-405m", 8});
  std::map<std::string_view, double> bytes;
  double sum = 0;
  for (const DryWork& w : t.step()) bytes[w.op] += static_cast<double>(w.bytes) / 1e9, sum += w.bytes / 1e9;
  const std::map<std::string_view, double> max = {{"matmul", 50.1},
                                                  {"linear", 13.8},
                                                  {"binary", 12.1},
                                                  {"binary_backward", 11.1},
                                                  {"copy", 0.7},
                                                  {"rms_norm", 6.6},
                                                  {"rms_norm_backward", 6.6},
                                                  {"split_qkv", 4.9},
                                                  {"split_qkv_backward", 7.3},
                                                  {"compose_factors", 0.6},
                                                  {"compose_factors_backward", 0.8},
                                                  {"optimizer_update", 11.8},
                                                  {"sum_of_squares", 1.9},
                                                  {"cross_entropy_in_place", 5},
                                                  {"dcmha_forward", 4.5},
                                                  {"dcmha_backward", 140}};
  for (const auto& [op, gb] : bytes) {
    const auto bound = max.find(op);
    BOOST_TEST(gb <= (bound == max.end() ? 20 : bound->second), op << ": " << gb << " GB");
    BOOST_TEST(gb > 0, op << " says nothing of its bytes");
    BOOST_TEST_MESSAGE(op << ": " << gb << " GB");
  }
  BOOST_TEST(sum <= 279);
}

// The memory of an H100 of 80 GB beside that of CUDA, its libraries and the graphs themselves.
BOOST_AUTO_TEST_CASE(a_model_of_2_8b_is_captured_within_76_gib) {
  DryTraining t({"dcformer-2.8b", 4}, {.memory = int64_t{76} << 30});
  for (int step = 0; step < 3; ++step) {
    t.step();
    models::evaluate(*t.model, {t.batch});  // validation, beside the memory of the graphs
  }
  t.step();
  BOOST_TEST(t.trainer->replays_steps(), t.trainer->capture_given_up_reason());
  BOOST_TEST(t.dry.counts().allocations == 0);
  BOOST_TEST_MESSAGE("with validation: reserved " << t.memory().reserved / kGiB << " GiB");
}

// A launched step gives memory back to the driver where that is too small for the next tensor, which a capture cannot.
BOOST_AUTO_TEST_CASE(a_capture_without_memory_is_given_up_with_its_reason) {
  const DryDevice dry({.memory = int64_t{1} << 30});
  models::CapturedStep step(dry.device(), {});
  step.enable(true);
  const std::vector<models::Batch> batches{models::text_batch(zeros({1, 4}, DType::i64), zeros({1, 4}, DType::i64))};
  const auto work = [&](const models::StepBuffers&) {
    for (int64_t mebibytes : {600, 700}) empty({mebibytes << 20}, DType::u8, dry.device());
  };
  for (int i = 0; i < 3; ++i) {
    step.gradients(batches, 1, work);
    step.update([] {});
    BOOST_TEST(!step.captured());
    BOOST_TEST(step.given_up_reason().starts_with(i == 0 ? "" : "out of memory on the dry device"),
               step.given_up_reason());
  }
}

BOOST_AUTO_TEST_SUITE_END()
