// A safetensors file that all ranks of a job write at once, each the numbers that it owns: nothing is gathered, and the
// bytes are those that one process writes.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "braid/models/training/trainer.h"

namespace braid::models {

class SharedTensors {
 public:
  // tensors: on every rank the same names, types and shapes. They must live as long as this.
  SharedTensors(const std::filesystem::path& path, const std::vector<OwnedTensor>& tensors,
                const io::Metadata& metadata = {});
  void make();   // one rank: the file in its full size. That rank writes the header too.
  void write();  // then every rank: its numbers, synced to the disk
  // Our share in the file's CRC-32C, of what was to be written, not of what the disk made of it.
  uint32_t share() const { return share_; }
  int64_t bytes() const { return plan_.bytes; }  // of the whole file

 private:
  std::string path_;
  const std::vector<OwnedTensor>& tensors_;
  io::SafetensorsPlan plan_;
  bool made_ = false;
  uint32_t share_ = 0;
};

}  // namespace braid::models
