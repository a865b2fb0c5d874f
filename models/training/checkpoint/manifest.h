// The manifest of a checkpoint: bytes and CRC-32C of each of its files. It is written last, so a checkpoint counts only
// while every file still matches it.
//
//   trainer/manifest.json   {"format": 1, "step": 40, "files": {"config.json": {"bytes": 812, "crc32c": "0a1b2c3d"},
//   ...}}
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "braid/distributed/comm/communicator.h"

namespace braid::models {

inline constexpr const char* kManifestFile = "trainer/manifest.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "trainer/optimizer.safetensors";
inline constexpr const char* kStateFile = "trainer/state.json";

// Lists every regular file below `folder`. known_checksums: of files whose CRC-32C was computed while they were
// written; the others are small and read back.
void write_manifest(const std::filesystem::path& folder, int64_t step,
                    const std::map<std::string, uint32_t>& known_checksums);

// Compares every file of a checkpoint with its manifest, and the step in manifest and state.json with the folder's name
// where that is one of a checkpoint ("step-00000040"). None when all match, otherwise the first difference, as a
// message that begins with the file's name. io::SystemError where they cannot be compared now. Collective: each rank
// reads 1/P of every file; the result is the same on all ranks.
std::optional<std::string> find_damage(const std::filesystem::path& checkpoint, const dist::Communicator& world = {});

// Caches the results of find_damage() as long as size, inode and times of all files of a checkpoint are unchanged.
// Damage that changes none of them (a decaying disk) goes unnoticed here; a resume verifies anew.
class VerdictCache {
 public:
  std::optional<std::string> find_damage(const std::filesystem::path& checkpoint, const dist::Communicator& world);
  void forget(const std::filesystem::path& checkpoint) { verdicts_.erase(checkpoint); }

 private:
  struct Verdict {
    std::string stamps;  // on rank 0, whose file system decides for all; empty: verify again
    std::optional<std::string> damage;
  };
  std::map<std::filesystem::path, Verdict> verdicts_;
};

}  // namespace braid::models
