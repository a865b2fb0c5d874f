// braid bench decode: the speed of generation, one-token steps against a cache.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "apps/bench/bench.h"
#include "apps/cli/memory_text.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "braid/autograd/ops.h"
#include "braid/models/language_model.h"
#include "braid/models/pretrained/pretrained.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

using Clock = std::chrono::steady_clock;

// Of the folder --model, or of the preset with its first weights.
std::unique_ptr<models::LanguageModel> decoding_model(const Arguments& arguments) {
  const bool int8 = int8_weights(arguments);
  const DType dtype = dtype_of(arguments).value_or(DType::f32);
  if (!arguments.has("model")) {
    auto model = models::as_language_model(bench_model(arguments).spec->make({1, 0}));
    model->to(dtype);
    if (int8) model->quantize_weights();
    return model;
  }
  check(!arguments.has("preset"), ErrorKind::setting,
        [] { return std::string("--preset and --model name two models: expected one of them"); });
  models::LoadOptions options{.settings = override_keys(arguments.overrides()), .tokenizer = false};
  options.int8_weights = int8;
  if (!int8) options.dtype = dtype;
  models::LoadedModel loaded = models::load_model(model_folder(arguments.get("model")), options);
  print_notes(loaded.notes);
  return models::as_language_model(std::move(loaded.model));
}

double weight_bytes(const models::LanguageModel& model) {
  double bytes = 0;
  for (const nn::NamedTensor& p : nn::parameters(model))
    bytes += static_cast<double>(p.value.numel() * size_of(p.value.dtype()));
  return bytes;
}

// A pass over ids (B, T) and the likeliest next tokens (B, 1); adds the wall time to `times`.
Tensor timed_pass(const models::LanguageModel& model, const Tensor& ids, models::KvCache& cache,
                  std::vector<double>& times) {
  const auto start = Clock::now();
  const Tensor h = model.hidden(ids, &cache);
  const Tensor next = argmax(model.logits(contiguous(h.sliced(1, h.dim(1) - 1, h.dim(1)))));
  synchronize(model.device());
  times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  return next;
}

}  // namespace

int bench_decode(const Arguments& arguments) {
  const std::string dtype = arguments.get("dtype");
  const Device device = device_of(arguments);
  const std::unique_ptr<models::LanguageModel> model = decoding_model(arguments);
  model->to(device);
  constexpr int64_t untimed = 2;  // the first steps enlarge the cache
  const int64_t B = arguments.has("batch") ? arguments.get_int("batch") : 1, longest = model->max_sequence_length();
  int64_t T = arguments.get_int("context"), steps = arguments.get_int("tokens");
  // The defaults give way.
  if (!arguments.has("tokens")) steps = std::clamp<int64_t>((longest - untimed) / 2, 1, steps);
  if (!arguments.has("context")) T = std::clamp<int64_t>(longest - untimed - steps, 1, T);
  check(T + steps <= longest - untimed, ErrorKind::setting, [&] {
    return "--context and --tokens are too long for the model: expected at most " + std::to_string(longest - untimed) +
           " in all, found " + std::to_string(T) + " + " + std::to_string(steps);
  });
  NoGrad off;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < B * T; ++i)
    ids.push_back(static_cast<int64_t>(random_bits(static_cast<uint64_t>(i), {1, 1}) %
                                       static_cast<uint64_t>(model->vocab_size())));
  reset_peak_memory(device);
  models::KvCache cache = model->make_cache(T + untimed + steps);
  std::vector<double> prompt_time, times;
  Tensor next = timed_pass(*model, from_vector(ids, {B, T}).to(device), cache, prompt_time);
  for (int64_t i = 0; i < untimed + steps; ++i) next = timed_pass(*model, next, cache, times);
  times.erase(times.begin(), times.begin() + untimed);

  const double step = median(times), fastest = *std::min_element(times.begin(), times.end());
  const double prompt = static_cast<double>(B * T) / prompt_time[0], tokens = static_cast<double>(B) / step;
  const double weights = weight_bytes(*model), cached = static_cast<double>(cache.bytes());
  const double peak = static_cast<double>(memory_stats(device).peak);
  const std::string name = arguments.get(arguments.has("model") ? "model" : "preset");
  const std::string where = device == kCpu ? std::to_string(threads()) + " threads" : str(device);
  if (arguments.has("json")) {
    std::printf(
        "{\"framework\": \"braid\", \"dtype\": \"%s\", \"device\": \"%s\", \"parameters\": %lld, \"batch\": %lld, "
        "\"context\": %lld, \"threads\": %d, \"steps\": %lld, \"step_seconds\": %.6g, \"step_seconds_min\": %.6g, "
        "\"tokens_per_second\": %.6g, \"prompt_tokens_per_second\": %.6g, \"weight_bytes\": %.0f, \"cache_bytes\": "
        "%.0f, \"peak_tensor_mib\": %.1f, \"attention\": %s}\n",
        dtype.c_str(), str(device).c_str(), static_cast<long long>(nn::count(*model)), static_cast<long long>(B),
        static_cast<long long>(T), threads(), static_cast<long long>(steps), step, fastest, tokens, prompt, weights,
        cached, peak / (1 << 20), attention_json().c_str());
    return 0;
  }
  std::printf("decoding with %s, batch %lld, after %lld tokens, %s, %s, median of %lld steps\n", name.c_str(),
              static_cast<long long>(B), static_cast<long long>(T), dtype.c_str(), where.c_str(),
              static_cast<long long>(steps));
  std::printf("  step             %.4g ms (fastest %.4g ms)\n", 1e3 * step, 1e3 * fastest);
  std::printf("  tokens           %s/s\n", human(tokens, 4).c_str());
  std::printf("  weights          %s, read at %.1f GB/s\n", bytes_text(weights).c_str(), weights / step / 1e9);
  std::printf("  prompt           %s tokens/s\n", human(prompt, 4).c_str());
  std::printf("  cache            %s\n", bytes_text(cached).c_str());
  std::printf("  peak memory      %s in tensors, %s of the process\n", bytes_text(peak).c_str(),
              bytes_text(peak_process_bytes()).c_str());
  return 0;
}

}  // namespace braid::apps
