// A safetensors file that all ranks of a job write at once, each the elements that it owns: nothing is gathered, and
// the bytes are those that one process writes.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "braid/models/training/trainer.h"

namespace braid::models {

class ShardedSafetensorsWriter {
 public:
  // tensors: on every rank the same names, types and shapes. They must outlive the writer.
  ShardedSafetensorsWriter(const std::filesystem::path& path, const std::vector<LocalTensor>& tensors,
                           const io::Metadata& metadata = {});
  void create();  // on one rank: the file in its full size. That rank writes the header too.
  void write();   // then on every rank: its elements, synced to the disk
  // This rank's contribution to the file's CRC-32C, of the bytes handed to the system, not of those on the disk.
  uint32_t checksum_share() const { return checksum_share_; }

 private:
  std::string path_;
  const std::vector<LocalTensor>& tensors_;
  io::SafetensorsPlan plan_;
  bool writes_header_ = false;
  uint32_t checksum_share_ = 0;
};

}  // namespace braid::models
