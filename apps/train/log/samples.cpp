#include "apps/train/log/samples.h"

#include <algorithm>

#include "apps/cli/text.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/line_reader.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace fs = std::filesystem;

namespace {
constexpr std::string_view kHeading = "--- step ";

std::optional<int64_t> heading_step(std::string_view line) {
  if (!line.starts_with(kHeading)) return std::nullopt;
  return parse_int(line.substr(kHeading.size()));
}
}  // namespace

SamplesFile::SamplesFile(const fs::path& path, int64_t step) : path_(path) {
  const auto found = io::path_status(path);
  if (!found) return;
  int64_t keep = INT64_MAX, lost = INT64_MAX;  // where later samples begin, where a torn line or zeros do
  if (S_ISREG(found->st_mode)) {               // not of a device or pipe that takes the samples
    io::LineReader lines(path.string());
    while (keep == INT64_MAX && lines.next()) {
      const std::optional<int64_t> of = lines.complete() ? heading_step(lines.text()) : std::nullopt;
      if (of && *of > step) keep = lines.begin();
      if (of && *of <= step) last_step_ = *of, lost = INT64_MAX;
      if (lost == INT64_MAX && !lines.intact()) lost = lines.begin();
    }
  }
  file_.emplace(path.string(), std::min(keep, lost));
}

void SamplesFile::append(int64_t step, const std::string& text) {
  std::string entry = str(kHeading, step, "\n");
  std::string visible = detail::replace_invalid_utf8(text);
  std::ranges::replace(visible, '\0', ' ');  // see the constructor
  for (const std::string& line : split(visible, '\n')) entry += (line.starts_with(kHeading) ? " " : "") + line + "\n";
  if (!file_) file_.emplace(path_.string());
  last_step_ = step;
  file_->append(entry);
}

std::function<void()> SamplesFile::sync_later() {
  return file_ ? file_->sync_later() : [] {};
}

}  // namespace braid::apps
