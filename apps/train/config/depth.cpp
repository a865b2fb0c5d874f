#include "apps/train/config/depth.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "apps/cli/plan_report.h"
#include "apps/cli/text.h"
#include "braid/models/cost/size.h"
#include "braid/models/registry.h"
#include "braid/tensor/error.h"

namespace braid::apps {

namespace {

constexpr double kTokensPerParameter = 20, kTokensAtOnce = 16384;
constexpr double kFewestFlops = 1e17;  // of the runs that the rate was fitted to

// The model of these settings, with more tokens than any special one where the vocabulary is that of data.
std::unique_ptr<const models::ModelSpec> described(const TrainConfig& config) {
  models::SettingTexts keys;
  for (const auto& [key, value] : config.model.values) keys.emplace_back(key, plain_text(value));
  if (!config.model.values.contains("vocab_size")) keys.emplace_back("vocab_size", std::to_string(1 << 20));
  return models::configure_model("", keys);
}

int64_t power_of_two(double x) { return int64_t{1} << std::max(0L, std::lround(std::log2(x))); }

}  // namespace

int64_t heads_of_depth(int64_t depth) {
  if (depth <= 16) return depth;
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(depth - 1)));
}

std::vector<std::string> set_by_depth(TrainConfig& c, const std::set<std::string>& given) {
  const int64_t depth = c.model.depth;
  if (depth == 0) return {};
  for (const auto& [name, value] :
       {std::pair<const char*, std::string>{"model.preset", c.model.preset}, {"train.init_from", c.train.init_from}})
    check(value.empty(), ErrorKind::setting, [&, &name = name, &value = value] {
      return str("model.depth = ", depth, " describes a new model: expected no ", name, " beside it, found ", value);
    });
  std::vector<std::string> set;
  for (const auto& [key, value] :
       {std::pair<const char*, int64_t>{"n_layer", depth}, {"dim", 64 * depth}, {"n_head", heads_of_depth(depth)}})
    if (c.model.values.emplace(key, value).second) set.push_back(str("model.", key, "=", value));
  const std::unique_ptr<const models::ModelSpec> spec = described(c), base = spec->mup_base();
  const auto size_of = [](const models::ModelSpec& model) { return double(models::model_size(model).non_embedding); };
  const double n = size_of(*spec), tokens = kTokensPerParameter * n;
  const auto flops = [](double size) { return 6 * size * kTokensPerParameter * size; };
  const auto T = static_cast<double>(c.data.seq_len > 0 ? c.data.seq_len : spec->max_sequence_length());
  const auto use = [&](const char* name, auto& setting, auto value) {
    if (given.contains(name)) return;
    setting = value;
    set.push_back(str(name, "=", plain_text(setting)));
  };
  const double rate = 0.3118 * std::pow(std::max(kFewestFlops, flops(base ? size_of(*base) : n)), -0.1250);
  use("optimizer.lr", c.optimizer.lr, std::strtod(number("%.3g", rate).c_str(), nullptr));
  const double sequences = static_cast<double>(power_of_two(0.2920 * std::pow(flops(n), 0.3271) / T));
  use("train.batch_size", c.train.batch_size, std::min(power_of_two(sequences), power_of_two(kTokensAtOnce / T)));
  use("train.accumulate", c.train.accumulate, power_of_two(sequences / static_cast<double>(c.train.batch_size)));
  if (c.train.epochs == 0) {
    const double step = T * static_cast<double>(c.train.batch_size) * static_cast<double>(c.train.accumulate);
    use("train.steps", c.train.steps, std::max<int64_t>(1, std::llround(tokens / step)));
    use("schedule.warmup", c.schedule.warmup, std::max<int64_t>(1, c.train.steps / 20));
  }
  return {str("model.depth=", depth, ": ", human(n, 3), " parameters beside the tables of the vocabulary, ",
              human(tokens, 3), " tokens; sets ", set.empty() ? "nothing that is not given" : join(set, ", "))};
}

}  // namespace braid::apps
