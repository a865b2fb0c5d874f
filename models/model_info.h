// Facts about a model as sections of rows, for `braid info`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace braid::models {

enum class InfoUnit : uint8_t { count, bytes, flops };

struct InfoRow {
  std::string key, label;  // for programs, for people
  double value = 0;
  InfoUnit unit = InfoUnit::count;
  std::string note = "";
};
struct InfoSection {
  std::string key, title;
  std::vector<InfoRow> rows;
};

// The work that the facts are about.
struct InfoRequest {
  int64_t batch = 1;    // samples at a time
  int64_t seq_len = 0;  // tokens of a sample; 0 for models of other samples
};

}  // namespace braid::models
