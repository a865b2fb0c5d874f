#include "tests/simulation/corruption.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <vector>

#include "braid/models/data/text/dataset.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/error.h"
#include "tests/simulation/disk.h"

namespace braid::simulation {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

// The bytes at the head of a file of which each bit is tried.
uint64_t head_of(const std::string& path, const std::string& bytes) {
  uint64_t head = bytes.size() <= 2048 ? bytes.size() : 64;
  if (path.ends_with(".safetensors")) {
    std::memcpy(&head, bytes.data(), sizeof head);
    head += sizeof head;
  }
  return std::min<uint64_t>(head, bytes.size());
}

// How many flips in the files of `folder` are not noticed.
uint64_t flip(const std::string& folder, const std::function<bool()>& noticed, uint64_t random_bits, Random& random) {
  const std::vector<std::string> files = files_of(folder);
  uint64_t rest = 0, unnoticed = 0;  // bytes behind the heads
  for (const std::string& path : files) rest += Disk::bytes_of(path).size() - head_of(path, Disk::bytes_of(path));
  for (const std::string& path : files) {
    const std::string bytes = Disk::bytes_of(path);
    const uint64_t head = head_of(path, bytes), behind = bytes.size() - head;
    std::vector<uint64_t> bits(8 * head);
    for (uint64_t i = 0; i < bits.size(); ++i) bits[i] = i;
    for (uint64_t n = behind > 0 ? random_bits * behind / rest : 0; n > 0; --n)
      bits.push_back(8 * head + random.below(8 * behind));
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    uint64_t missed = 0;
    for (const uint64_t bit : bits) {
      const auto at = static_cast<off_t>(bit / 8);
      const char before = bytes[bit / 8], after = static_cast<char>(before ^ (1 << bit % 8));
      const bool flipped = ::pwrite(fd, &after, 1, at) == 1;
      if (!flipped || !noticed()) {
        if (++missed <= 3)
          std::printf("  bit %llu of %s: not noticed\n", static_cast<unsigned long long>(bit), path.c_str());
      }
      if (::pwrite(fd, &before, 1, at) != 1) throw std::runtime_error("cannot restore " + path);
    }
    ::close(fd);
    std::printf("%-44s %8llu %8llu %8llu\n", fs::path(path).lexically_relative(folder).c_str(),
                static_cast<unsigned long long>(8 * head), static_cast<unsigned long long>(bits.size() - 8 * head),
                static_cast<unsigned long long>(missed));
    std::fflush(stdout);
    unnoticed += missed;
  }
  return unnoticed;
}

}  // namespace

uint64_t corrupt_each_bit(const Folders& folders, Judge& judge, uint64_t random_bits) {
  Random random(7);
  const History history{.steps = 4, .keep = 3};
  judge.undisturbed(history);  // leaves the checkpoints of steps 2 and 4
  std::printf("%-44s %8s %8s %8s\n", "file", "head", "rest", "unnoticed");
  const auto older_is_taken = [&] {
    std::vector<std::string> notes;
    return models::newest_checkpoint(folders.run(), notes).step == 2 && notes.size() == 1;
  };
  if (older_is_taken()) throw std::runtime_error("a checkpoint is damaged before anything was flipped");
  uint64_t unnoticed = flip(folders.run() + "/" + models::step_name(4), older_is_taken, random_bits / 2, random);
  const auto reading_fails = [&] {
    try {
      for (const models::text::Split split : {models::text::Split::train, models::text::Split::val}) {
        const models::text::Dataset data(folders.data, split, 8);
        std::vector<int32_t> tokens(static_cast<size_t>(data.tokens()));
        data.read(0, tokens);
      }
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  if (reading_fails()) throw std::runtime_error("the data are damaged before anything was flipped");
  return unnoticed + flip(folders.data, reading_fails, random_bits / 2, random);
}

}  // namespace braid::simulation
