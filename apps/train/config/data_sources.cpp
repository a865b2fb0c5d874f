#include "apps/train/config/data_sources.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using models::text::Mixture, models::text::WeightChange;

constexpr double max_token = 1e15;  // of a change

[[noreturn]] void reject(const std::string& text, const std::string& why) {
  fail(ErrorKind::setting, "bad value for data.sources: '" + preview(text) + "' " + why +
                               "; expected PATH [weight=W] [weight=W@TOKEN ...]");
}

WeightChange parse_weight(const std::string& text, const std::string& word) {
  const std::string value = word.substr(std::string_view("weight=").size());
  const size_t at = value.find('@');
  const std::optional<double> weight = parse_float(value.substr(0, at));
  if (!weight || !std::isfinite(*weight) || *weight < 0)
    reject(text, "has '" + word + "', whose weight is not a finite number of at least 0");
  if (at == value.npos) return {0, *weight};
  const std::optional<double> token = parse_float(value.substr(at + 1));
  if (!token || !(*token >= 0) || *token > max_token || *token != std::floor(*token))
    reject(text, "has '" + word + "', whose token is not an integer from 0 to 1e15");
  return {static_cast<int64_t>(*token), *weight};
}

DataSource parse_source(const std::string& text) {
  constexpr std::string_view key = " weight=";
  const size_t end = std::min(text.find(key), text.size());
  DataSource source{.path = std::string(trim(text.substr(0, end))), .weights = {}, .name = ""};
  if (source.path.empty() || source.path.starts_with("weight=")) reject(text, "has no path");
  for (const std::string& word : split(text.substr(end), ' ')) {
    if (word.empty()) continue;
    if (!word.starts_with("weight=")) reject(text, "has the unexpected '" + word + "'");
    const WeightChange change = parse_weight(text, word);
    if (source.weights.empty() && change.token > 0)
      reject(text, "has no weight from the first token on, before '" + word + "'");
    if (!source.weights.empty() && change.token <= source.weights.back().token)
      reject(text, str("has phases out of order: '", word, "' follows one from token ", source.weights.back().token));
    source.weights.push_back(change);
  }
  if (source.weights.empty()) source.weights.push_back({0, 1});
  return source;
}

fs::path resolved(const std::string& path) {
  std::error_code ignored;
  const fs::path full = fs::absolute(path, ignored).lexically_normal();
  return full.has_filename() ? full : full.parent_path();
}

// The name of a column: what a line of CSV or a label takes as it is.
std::string column_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  return text;
}

void set_names(std::vector<DataSource>& sources) {
  const auto count = [&](const std::string& name) { return std::ranges::count(sources, name, &DataSource::name); };
  for (DataSource& source : sources) source.name = column_name(resolved(source.path).filename().string());
  std::vector<std::string> longer;
  for (const DataSource& source : sources) {
    const fs::path path = resolved(source.path);
    longer.push_back(count(source.name) > 1 ? column_name(path.parent_path().filename().string()) + "-" + source.name
                                            : source.name);
  }
  for (size_t i = 0; i < sources.size(); ++i) sources[i].name = longer[i];
  for (size_t i = 0; i < sources.size(); ++i)
    if (std::ranges::count(longer, longer[i]) > 1) sources[i].name = str(longer[i], "-", i + 1);
}

// Shares at the token: of the mixture that begins there.
void check_weights(const std::vector<DataSource>& sources, int64_t token) {
  double sum = 0;
  std::vector<double> weights;
  for (const DataSource& source : sources) {
    const auto next = std::ranges::upper_bound(source.weights, token, {}, &WeightChange::token);
    weights.push_back(std::prev(next)->weight);
    sum += weights.back();
  }
  check(sum > 0 && std::isfinite(sum), ErrorKind::setting, [&] {
    return str("bad value for data.sources: the weights from token ", token, " on sum to ", shortest(sum),
               "; expected a finite sum above 0");
  });
  for (size_t i = 0; i < weights.size(); ++i)
    check(weights[i] == 0 || weights[i] / sum >= Mixture::min_share, ErrorKind::setting, [&] {
      return str("bad value for data.sources: ", sources[i].path, " has the weight ", shortest(weights[i]),
                 " of a sum of ", shortest(sum), " from token ", token, " on; expected 0, or at least ",
                 shortest(Mixture::min_share), " of the sum");
    });
}

}  // namespace

std::vector<DataSource> data_sources(const TrainConfig& config) {
  std::vector<DataSource> sources;
  for (const std::string& text : config.data.sources) sources.push_back(parse_source(text));
  if (sources.empty()) return sources;
  check(config.data.path.empty(), ErrorKind::setting, [&] {
    return "data.path and data.sources both name data: expected one of them, found data.path = " + config.data.path +
           " beside data.sources; set data.path=\"\" or leave data.sources out";
  });
  for (size_t i = 0; i < sources.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      check(resolved(sources[i].path) != resolved(sources[j].path) && !io::is_same(sources[i].path, sources[j].path),
            ErrorKind::setting, [&] {
              return "bad value for data.sources: " + sources[i].path +
                     " is there twice; expected each folder once, with the sum of its weights";
            });
  for (const DataSource& source : sources)
    for (const WeightChange& change : source.weights) check_weights(sources, change.token);
  set_names(sources);
  return sources;
}

std::vector<double> last_weights(const TrainConfig& config) {
  std::vector<double> weights;
  for (const DataSource& source : data_sources(config)) weights.push_back(source.weights.back().weight);
  return weights;
}

std::vector<std::string> data_folders(const TrainConfig& config) {
  std::vector<std::string> folders;
  for (const DataSource& source : data_sources(config)) folders.push_back(source.path);
  if (folders.empty() && !config.data.path.empty()) folders.push_back(config.data.path);
  return folders;
}

std::string data_folder(const TrainConfig& config) {
  const std::vector<std::string> folders = data_folders(config);
  return folders.empty() ? "" : folders[0];
}

}  // namespace braid::apps
