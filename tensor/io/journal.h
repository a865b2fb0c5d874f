// Finished units of long work, a line of JSON each, behind a line that says what they depend on. A call that was killed
// is repeated and skips what is there; a last line that was not written completely is cut off.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/tensor/io/append_file.h"

namespace braid::io {

// All that the units depend on, by name.
using Fingerprint = std::vector<std::pair<std::string, std::string>>;

class Journal {
 public:
  // Called for each unit that an earlier call left; returns what was expected instead, or "" when it is good.
  using Take = std::function<std::string(const nlohmann::json& unit)>;
  // Line 1 is {"kind": {fingerprint}}. Error(setting) where the file is of another fingerprint, naming the difference;
  // Error(input) where a line is bad; `advice` ends both.
  Journal(const std::string& path, const std::string& kind, const Fingerprint& fingerprint, const std::string& advice,
          const Take& take);

  void add(std::string_view unit);                   // a line without its end; Error(output)
  void sync() { file_->sync(); }                     // everything to the disk; Error(output)
  const std::string& head() const { return head_; }  // line 1

 private:
  std::string head_;
  std::optional<AppendFile> file_;
};

}  // namespace braid::io
