#include "apps/study/metric.h"

#include <algorithm>
#include <map>
#include <numbers>
#include <vector>

#include "apps/train/config/data_sources.h"
#include "apps/train/task/from_config.h"
#include "braid/models/data/text/dataset.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/data/vision/manifest.h"
#include "braid/models/families/seq2seq/pairs.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

// Bits per byte of one nat per token.
double bits_of_a_nat(const std::string& folder) {
  using namespace models::text;
  const Dataset data(folder, Split::val, 1);
  constexpr int64_t piece = 1 << 16;
  std::vector<int32_t> ids;
  int64_t bytes = 0;
  for (int64_t first = 0; first < data.tokens(); first += piece) {
    ids.resize(static_cast<size_t>(std::min(piece, data.tokens() - first)));
    data.read(first, ids);
    for (const int32_t id : ids)
      if (!data.tokenizer().is_special(id)) bytes += std::ssize(data.tokenizer().token_bytes(id));
  }
  check(bytes > 0, ErrorKind::input,
        [&] { return "cannot state a loss by byte: the validation split of " + folder + " holds no text"; });
  return static_cast<double>(data.tokens()) / static_cast<double>(bytes) / std::numbers::ln2;
}

}  // namespace

const char* trained_unit(const Study& study) {
  const RunSettings settings(study, study.base.settings);
  const std::string& path = settings.config.data.path;
  if (!path.empty() && models::vision::holds_images(path)) return "nats per image";
  return holds_preferences(settings.config) ? "nats per pair" : "nats per token";
}

const char* loss_unit(const Study& study) { return study.bits_per_byte ? "bits per byte" : trained_unit(study); }

void check_metric(const Study& study, const TrainConfig& config) {
  if (!study.bits_per_byte) return;
  const std::string& path = config.data.path;
  const bool text = !path.empty() && !models::PairTask::of_path(path) && !models::vision::holds_images(path) &&
                    !models::text::read_manifest(path).samples;
  check(text, ErrorKind::setting, [&] {
    return "study.metric = bits-per-byte counts every token of a text: expected data.path, a folder of plain text, "
           "found " +
           (path.empty() ? "data.sources" : path + " of another kind") + "; use nats-per-token";
  });
}

void convert_losses(const Study& study, std::span<StudyResult> results) {
  if (!study.bits_per_byte) return;
  std::map<std::string, double> factors;
  for (StudyResult& result : results) {
    const RunSettings settings(study, result.run.settings);
    check_metric(study, settings.config);
    const std::string folder = data_folder(settings.config);
    if (!factors.contains(folder)) factors[folder] = bits_of_a_nat(folder);
    result.loss *= factors[folder];
  }
}

}  // namespace braid::apps
