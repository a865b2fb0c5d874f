// samples.txt of a run: texts of the model, each below a line "--- step N". Valid UTF-8.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "braid/tensor/io/append_file.h"

namespace braid::apps {

class SamplesFile {
 public:
  // Cuts off the samples after `step`, which a resumed run makes again. A missing file is made by the first append().
  SamplesFile(const std::filesystem::path& path, int64_t step);

  int64_t last_step() const { return last_step_; }  // of the newest sample; -1: there is none
  // Invalid UTF-8 becomes U+FFFD, and a line that looks like a heading gets a space in front. Error(output); the sample
  // is then written with the next one.
  void append(int64_t step, const std::string& text);
  std::function<void()> sync_later();  // as AppendFile's

 private:
  std::filesystem::path path_;
  std::optional<io::AppendFile> file_;
  int64_t last_step_ = -1;
};

}  // namespace braid::apps
