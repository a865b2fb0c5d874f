// weights.csv of a run with run.strict: the checksum of the weights after each step, for `braid verify`.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "braid/tensor/io/append_file.h"

namespace braid::models {
class Trainer;
}

namespace braid::apps {

inline constexpr const char* kWeightHashesFile = "weights.csv";

// CRC-32C of names and values of the unsharded parameters. Collective over the tensor ranks.
uint32_t weight_hash(const models::Trainer& trainer);

// By step. Error(input) with the line that is none; an unfinished last line is none of the file's.
std::map<int64_t, uint32_t> read_weight_hashes(const std::filesystem::path& file);

class WeightHashes {
 public:
  // Opens or creates the file and cuts off what it has after `step`. Error(output).
  WeightHashes(const std::filesystem::path& file, int64_t step);
  void append(int64_t step, uint32_t hash);  // as AppendFile's
  std::function<void()> sync_later() { return file_.sync_later(); }

 private:
  io::AppendFile file_;
};

}  // namespace braid::apps
