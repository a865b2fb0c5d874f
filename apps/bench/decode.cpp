// braid bench decode: the speed of generation. The engine that generate, serve and chat use reads B prompts of T
// tokens, one after the other, and then continues all of them together, a token of each in a pass.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "apps/bench/bench.h"
#include "apps/bench/read_rate.h"
#include "apps/cli/memory_text.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "apps/train/plan/matmul_rate.h"
#include "braid/autograd/ops.h"
#include "braid/models/cost/trace.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/inference/engine.h"
#include "braid/models/inference/sequence_pool.h"
#include "braid/models/language_model.h"
#include "braid/models/study/intervals.h"
#include "braid/nn/inference/gather_weights.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

using Clock = std::chrono::steady_clock;

// The model of the folder --model, or of the preset with initial weights.
std::unique_ptr<models::LanguageModel> decoding_model(const Arguments& arguments) {
  const int bits = weight_bits(arguments);
  const DType dtype = dtype_of(arguments).value_or(DType::f32);
  if (!arguments.has("model")) {
    auto model = models::as_language_model(bench_model(arguments).spec->make({1, 0}));
    model->to(dtype);
    if (bits) model->quantize_weights(bits);
    return model;
  }
  check(!arguments.has("preset"), ErrorKind::setting, "--preset and --model name two models: expected one of them");
  models::LoadOptions options{.settings = override_keys(arguments.overrides()), .tokenizer = false};
  options.weight_bits = bits;
  options.keep_quantized = keeps_quantized(arguments);
  if (!bits) options.dtype = dtype;
  models::LoadedModel loaded = models::load_model(model_folder(arguments.get("model")), options);
  print_notes(loaded.notes);
  return models::as_language_model(std::move(loaded.model));
}

struct WeightBytes {
  double all = 0;
  double read = 0;  // in a pass. Of a table of token vectors only some rows are read, unless it makes the logits too
};

WeightBytes weight_bytes(const models::LanguageModel& model) {
  WeightBytes bytes;
  double table = 0;
  bool own_logits = false;
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    const double size = static_cast<double>(p.value.numel() * size_of(p.value.dtype()));
    bytes.all += size;
    if (p.name == "tok_embeddings.weight") table = size;
    own_logits |= p.name.starts_with("output.");
  }
  bytes.read = bytes.all - (own_logits ? table : 0);
  return bytes;
}

constexpr int64_t kUntimed =
    2;  // passes before the timed ones: the rest of the prompts with a first token, a second one
constexpr int64_t kSpare = 32;  // positions of a sequence for blocks that are not full, and that are copied

// B prompts of T random ids.
std::vector<std::vector<int32_t>> random_prompts(int64_t B, int64_t T, int64_t vocabulary, uint64_t seed) {
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(B));
  for (int64_t i = 0; i < B * T; ++i) {
    const uint64_t bits = random_bits(static_cast<uint64_t>(i), {seed, 1});
    prompts[static_cast<size_t>(i / T)].push_back(static_cast<int32_t>(bits % static_cast<uint64_t>(vocabulary)));
  }
  return prompts;
}

// FLOPs of a prompt of T tokens: logits are formed for the last one alone.
double prompt_pass_flops(const models::LanguageModel& model, int64_t T) {
  const int64_t D = model.hidden(from_vector(std::vector<int64_t>{0}, {1, 1}).to(model.device())).dim(2);
  return models::forward_flops(*model.spec(), T).total() - 2.0 * static_cast<double>((T - 1) * D * model.vocab_size());
}

struct DecodeTimes {
  double prompt_seconds = 0;  // of all prompts
  std::vector<double> passes;
  double cache_bytes = 0;  // held before the last pass
};

DecodeTimes time_decoding(const models::LanguageModel& model, int64_t B, int64_t T, int64_t steps) {
  std::unique_ptr<models::SequencePool> made = model.make_sequence_pool(B * (T + kUntimed + steps + kSpare));
  const models::SequencePool& pool = *made;
  models::EngineOptions options{.sequences = B};
  // Shared prompts are computed but for their last block, others completely: either fits into one pass.
  options.rows = std::max(options.rows, B * (pool.invariant() ? pool.block() : T));
  models::GenerationEngine engine(model, std::move(made), options);
  const auto prompts = random_prompts(B, T, model.vocab_size(), 1);
  int64_t running = 0;
  std::exception_ptr error;
  const auto submit = [&](const std::vector<int32_t>& prompt, int64_t tokens) {
    models::GenerationRequest request{.prompt = prompt, .max_tokens = tokens};
    request.sampling.temperature = 0;
    request.on_update = [&](const models::Update& update) {
      if (update.error) error = update.error;
      running -= update.finished;
      return true;
    };
    engine.submit(std::move(request));
    ++running;
  };
  const auto step = [&] {
    const bool more = engine.step();
    if (error) std::rethrow_exception(error);
    return more;
  };
  // Other prompts first: the system clears the pool's memory when it is touched for the first time.
  for (const auto& prompt : random_prompts(B, T, model.vocab_size(), 2)) submit(prompt, 1);
  while (step()) continue;
  const double untimed = engine.load().prompt_seconds;
  for (const auto& prompt : prompts) submit(prompt, 1);
  while (step()) continue;
  DecodeTimes times{.prompt_seconds = engine.load().prompt_seconds - untimed};

  for (const auto& prompt : prompts) submit(prompt, kUntimed + steps);  // they find their prompts in the cache
  while (engine.load().steps < B) step();
  while (running == B) {
    const auto start = Clock::now();
    step();
    times.passes.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    if (running < B) break;
    const double share = static_cast<double>(pool.free_blocks()) / static_cast<double>(pool.blocks());
    times.cache_bytes = static_cast<double>(pool.bytes()) * (1 - share);
  }
  return times;
}

}  // namespace

int bench_decode(const Arguments& arguments) {
  const std::string dtype = arguments.get("dtype");
  const Device device = device_of(arguments);
  const std::unique_ptr<models::LanguageModel> model = decoding_model(arguments);
  model->to(device);
  nn::gather_weights(*model);
  const int64_t B = arguments.has("batch") ? arguments.get_int("batch") : 1, longest = model->max_sequence_length();
  int64_t T = arguments.get_int("context"), steps = arguments.get_int("tokens");
  // The defaults give way.
  if (!arguments.has("tokens")) steps = std::clamp<int64_t>((longest - kUntimed) / 2, 1, steps);
  if (!arguments.has("context")) T = std::clamp<int64_t>(longest - kUntimed - steps, 1, T);
  check(T + steps <= longest - kUntimed, ErrorKind::setting, [&] {
    return str("--context and --tokens are too long for the model: expected at most ", longest - kUntimed,
               " in all, found ", T, " + ", steps);
  });
  NoGrad off;
  reset_peak_memory(device);
  const DecodeTimes times = time_decoding(*model, B, T, steps);
  const double peak = static_cast<double>(memory_stats(device).peak), process_peak = peak_process_bytes();
  const double read_rate = measured_read_rate(device), product_rate = measured_flops(device, model->dtype());

  const double step = models::median(times.passes),
               fastest = *std::min_element(times.passes.begin(), times.passes.end());
  const double prompt = static_cast<double>(B * T) / times.prompt_seconds, tokens = static_cast<double>(B) / step;
  const WeightBytes weights = weight_bytes(*model);
  const double cached = times.cache_bytes, read = weights.read + cached;
  const double prompt_flops = static_cast<double>(B) * prompt_pass_flops(*model, T) / times.prompt_seconds;
  const std::string name = arguments.get(arguments.has("model") ? "model" : "preset");
  const std::string where = device == kCpu ? str(threads(), " threads") : str(device);
  if (arguments.has("json")) {
    std::printf(
        "{\"framework\": \"braid\", \"dtype\": \"%s\", \"device\": \"%s\", \"parameters\": %lld, \"batch\": %lld, "
        "\"context\": %lld, \"threads\": %d, \"steps\": %lld, \"step_seconds\": %.6g, \"step_seconds_min\": %.6g, "
        "\"tokens_per_second\": %.6g, \"prompt_tokens_per_second\": %.6g, \"weight_bytes\": %.0f, \"cache_bytes\": "
        "%.0f, \"read_rate\": %.4g, \"read_share\": %.4g, \"product_rate\": %.4g, \"prompt_flops_share\": %.4g, "
        "\"peak_tensor_mib\": %.1f, \"attention\": %s}\n",
        dtype.c_str(), str(device).c_str(), static_cast<long long>(nn::count(*model)), static_cast<long long>(B),
        static_cast<long long>(T), threads(), static_cast<long long>(steps), step, fastest, tokens, prompt, weights.all,
        cached, read_rate, read / step / read_rate, product_rate, prompt_flops / product_rate, peak / (1 << 20),
        attention_json().c_str());
    return 0;
  }
  std::printf("decoding with %s, batch %lld, after %lld tokens, %s, %s, median of %lld steps\n", name.c_str(),
              static_cast<long long>(B), static_cast<long long>(T), dtype.c_str(), where.c_str(),
              static_cast<long long>(steps));
  std::printf("  step             %.4g ms (fastest %.4g ms)\n", 1e3 * step, 1e3 * fastest);
  std::printf("  tokens           %s/s\n", human(tokens, 4).c_str());
  std::printf("  weights          %s\n", bytes_text(weights.all).c_str());
  std::printf("  cache            %s\n", bytes_text(cached).c_str());
  std::printf("  reads            %.1f GB/s, %.0f%% of this machine's %.1f GB/s\n", read / step / 1e9,
              100 * read / step / read_rate, read_rate / 1e9);
  std::printf(
      "  prompt           %s tokens/s, %.1f GFLOP/s, %.0f%% of this machine's %s matrix product (%.1f GFLOP/s)\n",
      human(prompt, 4).c_str(), prompt_flops / 1e9, 100 * prompt_flops / product_rate, str(model->dtype()).c_str(),
      product_rate / 1e9);
  std::printf("  peak memory      %s in tensors, %s of the process\n", bytes_text(peak).c_str(),
              bytes_text(process_peak).c_str());
  return 0;
}

}  // namespace braid::apps
