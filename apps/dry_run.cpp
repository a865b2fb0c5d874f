#include "apps/dry_run.h"

#include <cstdio>

#include "apps/common/text.h"
#include "apps/train_setup.h"
#include "models/counting.h"
#include "tensor/cpu/parallel.h"

namespace braid::app {

namespace {
void line(const char* what, const std::string& value) { std::printf("  %-34s %s\n", what, value.c_str()); }
std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 1e8 ? "%.1f MB" : "%.2f GB", bytes < 1e8 ? bytes / 1e6 : bytes / 1e9);
  return text;
}
std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
}  // namespace

int dry_run(const TrainConfig& config) {
  int64_t vocabulary = 0, windows = 0;
  models::ModelConfig model = model_config(config, config.data.path.empty() ? 0 : 1);
  int64_t T = sequence_length(config, model);
  if (!config.data.path.empty()) {
    text::Dataset data(config.data.path, text::Split::train, T);
    vocabulary = data.tokenizer().vocab_size();
    windows = data.size();
    model = model_config(config, vocabulary);
  }
  models::ParameterCounts counts = models::count_parameters(model);
  models::Flops flops = models::flops_per_token(model, T);
  models::TrainingMemory memory = expected_memory(config, model, T);
  double tokens_per_step = double(config.train.batch_size) * double(config.train.accumulate) * double(T);
  double peak = measured_flops(), step_flops = flops.training() * tokens_per_step;
  // A third of the matrix product's own rate is what whole training steps of small models reach on CPUs.
  double expected = step_flops / (0.33 * peak);

  std::printf("model\n");
  line("parameters", std::to_string(counts.total));
  line("  without embeddings", std::to_string(counts.non_embedding));
  line("  dynamic compose weights", std::to_string(counts.dynamic * model.n_layer));
  line("FLOPs per token, forward", number("%.4g GFLOP", flops.forward() / 1e9));
  line("FLOPs per token, training", number("%.4g GFLOP", flops.training() / 1e9));
  std::printf("memory of a step (batch %lld x %lld tokens, %s)\n", static_cast<long long>(config.train.batch_size), static_cast<long long>(T), config.train.dtype.c_str());
  line("weights", gigabytes(memory.weights));
  line("gradients", gigabytes(memory.gradients));
  line("optimizer", gigabytes(memory.optimizer));
  line("activations", gigabytes(memory.activations));
  line("working space", gigabytes(memory.working));
  line("total", gigabytes(memory.total()));
  std::printf("time\n");
  line("tokens per step", number("%.0f", tokens_per_step));
  if (windows > 0) line("epochs over the run", number("%.2f", double(config.train.steps) * tokens_per_step / double(T) / double(windows)));
  line("matrix product of this machine", number("%.1f GFLOP/s", peak / 1e9) + ", " + std::to_string(threads()) + " threads");
  line("expected time per step", number("%.3g s at a third of that rate", expected));
  line("expected time of the run", number("%.3g h", expected * double(config.train.steps) / 3600));
  return 0;
}

}  // namespace braid::app
