#include "apps/serve/beginnings.h"

#include <algorithm>
#include <variant>

#include "apps/cli/config_file.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps::serve {
namespace {

constexpr size_t kMaxBeginnings = 3, kWords = 5, kMaxBytes = 60;
constexpr int64_t kLargestFile = 64 << 20;

std::string read_if_there(const std::filesystem::path& file) {
  return io::exists(file) ? io::read_text_file(file.string(), kLargestFile) : "";
}

void add(std::vector<std::string>& all, const std::string& text) {
  const bool shown = !detail::trim(text).empty() && text.size() <= kMaxBytes;
  if (shown && all.size() < kMaxBeginnings && std::ranges::find(all, text) == all.end()) all.push_back(text);
}

}  // namespace

std::vector<std::string> sentence_beginnings(const std::string& text, size_t words) {
  std::vector<std::string> found;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find_first_of(".!?\n", begin);
    if (end == std::string::npos) break;  // the last one may be cut off
    const std::vector<std::string> all = detail::split(detail::trim(text.substr(begin, end - begin)), ' ');
    const bool complete = all.size() >= words + 2 && std::ranges::count(all, "") == 0;
    if (complete) add(found, detail::join({all.begin(), all.begin() + std::ptrdiff_t(words)}, " "));
    begin = end + 1;
  }
  return found;
}

std::vector<std::string> beginnings_of(const std::filesystem::path& model_folder) try {
  const std::filesystem::path run = model_folder / "..";
  std::vector<std::string> all;
  if (!models::is_run_folder(run)) return all;
  for (const ConfigEntry& entry : parse_config(read_if_there(run / "config.resolved.toml"), "config.resolved.toml"))
    if (const auto* prompt = std::get_if<std::string>(&entry.value); prompt && entry.key == "sample.prompt")
      add(all, *prompt);
  const std::string samples = read_if_there(run / "samples.txt");
  const size_t head = ("\n" + samples).rfind("\n--- step "),
               newest = samples.find('\n', head == std::string::npos ? 0 : head);
  if (newest == std::string::npos) return all;
  for (const std::string& beginning : sentence_beginnings(samples.substr(newest + 1), kWords)) add(all, beginning);
  return all;
} catch (const Error&) {
  return {};
}

}  // namespace braid::apps::serve
