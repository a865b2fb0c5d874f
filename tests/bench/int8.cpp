// 8-bit and 4-bit weights beside f32 and bf16: the loss on the validation text of a data folder, and steps that decode
// one token, of the four types in turn. Prints one JSON object per line. Usage: bench_int8 [model=FOLDER data=FOLDER
// batches=32] [preset=NAME context=256 tokens=32] [a key of config.json]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "arguments.h"
#include "braid/autograd.h"
#include "braid/autograd/ops.h"
#include "braid/models/data/text/batches.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/language_model.h"
#include "braid/models/registry.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/cpu/int8/variants.h"
#include "braid/tensor/parallel.h"

using namespace braid;

namespace {

using Clock = std::chrono::steady_clock;

std::map<std::string, std::string> settings = {{"model", ""},       {"data", ""},       {"batches", "32"},
                                               {"preset", ""},      {"context", "256"}, {"tokens", "32"},
                                               {"instructions", ""}};
int64_t number(const char* key) { return std::stoll(settings.at(key)); }

struct Candidate {
  std::string name;
  std::unique_ptr<models::LanguageModel> model;
  double bytes() const {
    double sum = 0;
    for (const nn::NamedTensor& p : nn::parameters(*model))
      sum += static_cast<double>(p.value.numel() * size_of(p.value.dtype()));
    return sum;
  }
};

// make(name) gives the model in the type of this name.
template <class Make>
std::vector<Candidate> candidates(Make make) {
  std::vector<Candidate> list;
  for (const char* name : {"f32", "bf16", "int8", "int4"})
    list.push_back({name, models::as_language_model(make(name))});
  return list;
}

int bits_of(const std::string& name) { return name == "int8" ? 8 : name == "int4" ? 4 : 0; }
DType dtype_of(const std::string& name) { return name == "bf16" ? DType::bf16 : DType::f32; }

void measure_loss() {
  const std::string folder = settings["model"];
  const auto all = candidates([&](const std::string& name) {
    models::LoadOptions options{.tokenizer = false};
    options.weight_bits = bits_of(name);
    if (!options.weight_bits) options.dtype = dtype_of(name);
    return models::load_model(folder, options).model;
  });
  const models::text::Dataset data(settings["data"], models::text::Split::val, all[0].model->max_sequence_length());
  const auto batches = models::text::validation_batches(data, 1, number("batches"), {});
  const auto print = [&](const std::string& name, double loss, double bytes) {
    std::printf(
        "{\"what\": \"loss\", \"type\": \"%s\", \"tokens\": %lld, \"loss\": %.6f, \"perplexity\": %.5f, "
        "\"weight_bytes\": %.0f}\n",
        name.c_str(), static_cast<long long>(std::ssize(batches) * data.seq_len()), loss, std::exp(loss), bytes);
  };
  for (const Candidate& c : all) print(c.name, models::evaluate(*c.model, batches), c.bytes());
  // The output projection in f32 on the hidden states of the quantised models.
  const NoGrad off;
  for (const auto& [name, head] : nn::parameters(*all[0].model)) {
    if (name != "output.weight") continue;
    for (size_t i : {2, 3}) {
      double loss = 0, bytes = 4.0 * static_cast<double>(head.numel());
      for (const models::Batch& b : batches)
        loss += linear_cross_entropy(all[i].model->hidden(b.at("input_ids")), head, b.at("targets")).item();
      for (const nn::NamedTensor& p : nn::parameters(*all[i].model))
        bytes += p.name.starts_with("output.") ? 0 : static_cast<double>(p.value.numel() * size_of(p.value.dtype()));
      print(all[i].name + ", output projection in f32",
            loss / static_cast<double>(std::ssize(batches) * data.seq_len()), bytes);
    }
  }
}

void measure_decoding(const models::SettingTexts& keys) {
  const auto spec = models::configure_model(settings["preset"], keys);
  const auto all = candidates([&](const std::string& name) {
    auto model = spec->make({1, 0});
    model->to(dtype_of(name));
    if (const int bits = bits_of(name)) model->quantize_weights(bits);
    return model;
  });
  const NoGrad off;
  const int64_t context = number("context"), tokens = number("tokens");
  const Tensor prompt = full({1, context}, 1, DType::i64), next = full({1, 1}, 2, DType::i64);
  std::vector<models::KvCache> caches;
  std::vector<std::vector<double>> times(all.size());
  const auto pass = [&](size_t i, const Tensor& ids) {
    const auto start = Clock::now();
    const Tensor h = all[i].model->hidden(ids, &caches[i]);
    all[i].model->logits(contiguous(h.sliced(1, h.dim(1) - 1, h.dim(1))));
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<double> prompt_seconds;
  for (size_t i = 0; i < all.size(); ++i) {
    caches.push_back(all[i].model->make_cache(context + 2 + tokens));
    prompt_seconds.push_back(pass(i, prompt));
  }
  for (int64_t step = 0; step < 2 + tokens; ++step) {
    for (size_t i = 0; i < all.size(); ++i) {
      const double seconds = pass(i, next);
      if (step >= 2) times[i].push_back(seconds);
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    const double median = times[i][times[i].size() / 2];
    std::printf(
        "{\"what\": \"decoding\", \"type\": \"%s\", \"instructions\": \"%s\", \"threads\": %d, \"ms\": %.3f, "
        "\"fastest_ms\": %.3f, \"weight_bytes\": %.0f, \"prompt_tokens_per_s\": %.0f}\n",
        all[i].name.c_str(), cpu::int8::kernels().name, threads(), 1e3 * median, 1e3 * times[i][0], all[i].bytes(),
        static_cast<double>(context) / prompt_seconds[i]);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const models::SettingTexts keys = bench::read_some_arguments(count, arguments, settings);
  if (!cpu::int8::use_variant(settings["instructions"])) {
    std::fprintf(stderr, "this processor cannot run %s\n", settings["instructions"].c_str());
    return 2;
  }
  try {
    if (!settings["model"].empty()) measure_loss();
    if (!settings["preset"].empty()) measure_decoding(keys);
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 2;
  }
  return 0;
}
