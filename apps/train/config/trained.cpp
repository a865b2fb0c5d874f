#include "apps/train/config/trained.h"

#include <algorithm>

#include "apps/cli/plan_report.h"
#include "apps/cli/text.h"
#include "apps/train/config/layer_decay.h"
#include "braid/models/cost/trace.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/name_pattern.h"
#include "braid/nn/optim/registry.h"

namespace braid::apps {

namespace {

bool all_alike(const TrainConfig& config, const models::ModelSpec& model) {
  return !model.mup_base() && config.optimizer.groups.empty() && config.lora.rank == 0 &&
         config.optimizer.layer_decay == 1 && !nn::takes_matrices({.name = config.optimizer.name});
}

std::string label_of(const nn::ParameterRule& rule) {
  std::string label = rule.frozen_until == nn::kNeverTrained ? "frozen"
                      : rule.frozen_until > 0                ? str("frozen until step ", rule.frozen_until)
                                                             : "trained";
  if (rule.frozen_until == nn::kNeverTrained) return label;
  if (rule.lr != 1) label += ", lr x " + number("%.4g", rule.lr);
  if (rule.tail) label += str(", tail ", nn::tail_name(*rule.tail));
  if (rule.weight_decay) label += ", weight_decay " + shortest(*rule.weight_decay);
  return label;
}

}  // namespace

models::LoraOptions lora_options(const TrainConfig& config) {
  return {.rank = config.lora.rank, .alpha = config.lora.alpha, .targets = config.lora.targets};
}

std::vector<nn::ParameterGroup> parameter_groups(const TrainConfig& config) {
  std::vector<nn::ParameterGroup> groups;
  if (config.lora.rank > 0) {
    for (const char* text : {"* frozen", "*.lora_A.weight trained", "*.lora_B.weight trained"})
      groups.push_back(nn::parse_group(text));
  }
  for (const std::string& text : config.optimizer.groups) groups.push_back(nn::parse_group(text));
  return groups;
}

std::vector<nn::ParameterGroup> parameter_groups(const TrainConfig& config, const nn::Module& model) {
  std::vector<std::string> names;
  for (const nn::NamedTensor& p : nn::parameters(model)) names.push_back(p.name);
  return with_layer_decay(parameter_groups(config), config.optimizer.layer_decay, names);
}

std::unique_ptr<models::Model> shape_only(const TrainConfig& config, const models::ModelSpec& model) {
  std::unique_ptr<models::Model> made = model.make_shape_only();
  const nn::ShapeOnlyScope no_memory;
  if (config.lora.rank > 0) models::add_lora(*made, lora_options(config), {});
  return made;
}

TrainedParameters trained_parameters(const TrainConfig& config, const models::ModelSpec& model) {
  const std::unique_ptr<models::Model> made = shape_only(config, model);
  const std::vector<nn::ParameterGroup> groups = parameter_groups(config, *made);
  nn::check_groups(groups, nn::parameters(*made));
  const nn::OptimizerOptions optimizer =
      models::options_for(*made, {.name = config.optimizer.name,
                                  .momentum = config.optimizer.momentum,
                                  .muon = {.scale = nn::parse_muon_scale(config.muon.scale)},
                                  .groups = groups});
  TrainedParameters found;
  for (const nn::NamedTensor& p : nn::parameters(*made)) {
    const nn::ParameterRule rule = nn::rule_of(optimizer.groups, p.name);
    const int64_t n = p.value.numel();
    found.all += n;
    if (models::is_lora(p.name)) found.lora += n;
    std::string label = label_of(rule);
    if (rule.frozen_until != nn::kNeverTrained) {
      found.trained += n;
      found.states += n * std::ssize(nn::state_suffixes(optimizer, p));
      if (nn::takes_matrices(optimizer)) label += nn::takes_as_matrix(optimizer, p) ? ", as matrices" : ", by elements";
    }
    const std::string kind = nn::without_indices(p.name);
    auto row = std::ranges::find(found.rows, label, &TrainedParameters::Row::label);
    if (row == found.rows.end()) row = found.rows.insert(row, {label, 0, 0, {}});
    row->elements += n;
    row->tensors += 1;
    if (std::ranges::count(row->kinds, kind) == 0) row->kinds.push_back(kind);
  }
  if (const auto lora = models::lora_of(*made)) found.lora_layers = static_cast<int64_t>(lora->targets.size());
  found.lora_flops = 2 * static_cast<double>(found.lora);
  return found;
}

std::vector<std::pair<std::string, std::string>> trained_lines(const TrainConfig& config,
                                                               const models::ModelSpec& model, int64_t seq_len) {
  std::vector<std::pair<std::string, std::string>> lines;
  if (all_alike(config, model)) return lines;
  const TrainedParameters found = trained_parameters(config, model);
  const auto all = static_cast<double>(found.all);
  if (config.lora.rank > 0) {
    const double flops =
        models::forward_flops(model, seq_len).total() / static_cast<double>(std::max<int64_t>(1, seq_len));
    lines.emplace_back(str("LoRA of rank ", config.lora.rank),
                       str(found.lora_layers, " layers, ", found.lora, " parameters (",
                           share(double(found.lora), all - double(found.lora)), " of the model), forward pass + ",
                           share(found.lora_flops, flops), " FLOPs"));
  }
  for (const TrainedParameters::Row& row : found.rows) {
    constexpr size_t kListed = 6;
    std::vector<std::string> kinds = row.kinds;
    const size_t more = kinds.size() > kListed ? kinds.size() - kListed : 0;
    kinds.resize(kinds.size() - more);
    lines.emplace_back(row.label,
                       str(row.elements, " parameters (", share(double(row.elements), all), ") in ", row.tensors,
                           " tensors: ", join(kinds, ", "), more > 0 ? str(" and ", more, " more") : ""));
  }
  return lines;
}

}  // namespace braid::apps
