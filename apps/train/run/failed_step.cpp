#include "apps/train/run/failed_step.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/cli/text.h"
#include "apps/train/run/job.h"
#include "braid/autograd/ops.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {
namespace fs = std::filesystem;

namespace {
constexpr const char* kFailureFile = "failure.json";

// JSON has neither NaN nor infinities.
nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

FailedStep read(const fs::path& folder) {
  FailedStep failed{.times = 0};
  const std::string file = (folder / kFailureFile).string();
  if (!io::exists(file)) return failed;
  try {
    const nlohmann::json json = io::read_json_file(file, 64 << 20);
    failed.step = json.at("step"), failed.resumed_from = json.at("resumed_from");
    failed.conditions = json.at("conditions"), failed.reason = json.at("reason");
    failed.times = json.at("times");
  } catch (const io::SystemError&) {
    throw;
  } catch (const std::exception&) {  // a record that cannot be read keeps no run from starting
    failed.times = 0;
  }
  return failed;
}
}  // namespace

std::string run_conditions(const std::string& settings) {
  std::string text = program_fingerprint() + "\n";
  for (const std::string& line : split(settings, '\n'))
    if (!line.starts_with("out = ")) text += line + "\n";
  return detail::hex(io::crc32c(text.data(), static_cast<int64_t>(text.size())), 8);
}

FailedStep read_failed_step(const fs::path& run, int64_t step) {
  return read(run / ("failed-" + models::step_name(step)));
}

void write_failed_step(const fs::path& folder, const FailedStep& failed,
                       const std::vector<models::Batch>& micro_batches) {
  io::make_folder(folder);
  const nlohmann::ordered_json json{{"step", failed.step},
                                    {"reason", failed.reason},
                                    {"times", failed.times},
                                    {"lr", number(failed.lr)},
                                    {"loss", number(failed.loss)},
                                    {"grad_norm", number(failed.grad_norm)},
                                    {"resumed_from", failed.resumed_from},
                                    {"conditions", failed.conditions},
                                    {"windows", failed.windows}};
  io::write_file((folder / kFailureFile).string(), json.dump(1) + "\n");
  io::NamedTensors all;
  for (const nn::NamedTensor& t : micro_batches.at(0).tensors()) {
    std::vector<Tensor> parts;
    for (const models::Batch& batch : micro_batches) parts.push_back(batch.at(t.name));
    all.emplace_back(t.name, concat(parts, 0));
  }
  io::save_safetensors((folder / "batch.safetensors").string(), all);
}

void check_not_stuck(const fs::path& run, int64_t resumed_from, const std::string& conditions) {
  for (const fs::path& path : io::list_folder(run)) {
    if (!path.filename().string().starts_with("failed-step-")) continue;
    const FailedStep failed = read(path);
    check(failed.times < 2 || failed.resumed_from != resumed_from || failed.conditions != conditions,
          ErrorKind::numerical, [&] {
            return str("step ", failed.step, " has failed ", failed.times,
                       " times with these settings, and would fail again (", failed.reason,
                       "): change a setting, for example lower optimizer.lr, or move ", path.string(),
                       " away to try once more");
          });
  }
}

}  // namespace braid::apps
