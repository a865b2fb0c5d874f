// Exercise 13: checkpoints that no kill and no power loss can take away, on the disk of disk.h.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "course/13_safe_run/disk.h"
#include "course/checks.h"

namespace exercise {

using course::Disk;

// "step-00000012" of 12, and back; -1 for every other name, such as that of a temporary file.
inline std::string name_of(int step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(8 - digits.size(), '0') + digits;
}
inline int step_of(const std::string& name) {
  if (name.size() != 13 || name.compare(0, 5, "step-") != 0) return -1;
  if (name.find_first_not_of("0123456789", 5) != std::string::npos) return -1;
  return std::stoi(name.substr(5));
}

// CRC-32: from r = 0xffffffff, for each byte r ^= byte, then eight times: shift r right by one bit, and where the bit
// that fell out was 1, r ^= 0xedb88320. The result is ~r.
inline uint32_t checksum(const std::string& bytes) { throw course::NotWritten("checksum()"); }

// The bytes of a file for a state, and the state of a file; nullopt where the file is not exactly what pack() made: cut
// off, with any bit changed, zeros. The format is yours.
inline std::string pack(const std::string& state) { throw course::NotWritten("pack()"); }
inline std::optional<std::string> unpack(const std::string& file) { throw course::NotWritten("unpack()"); }

// The file `name` has these bytes, and has them after a power loss too. At every moment before, and after every kill or
// power loss, it has either the bytes before or the new ones, all of them. Other files may appear, with names that end
// with ".tmp"; one may be left there from before.
inline void replace(Disk& disk, const std::string& name, const std::string& bytes) {
  throw course::NotWritten("replace()");
}

struct Saved {
  int step;
  std::string state;
};
// The newest checkpoint, a file name_of(step) with pack(state), that is whole; nullopt where there is none.
inline std::optional<Saved> load(const Disk& disk) { throw course::NotWritten("load()"); }

// Saves the state after `step`. Afterwards, the folder has the `keep` newest checkpoints that are whole, and nothing
// else. A kill or power loss at any moment leaves a newest whole checkpoint: the one before, or this one.
inline void save(Disk& disk, int step, const std::string& state, int keep) { throw course::NotWritten("save()"); }

// The state after step(...step(step(start, 1), 2)..., steps). Saves with keep = 2 after every `every` steps and after
// the last one. Continues from the newest checkpoint, if there is one.
inline std::string run(Disk& disk, const std::string& start, int steps, int every,
                       const std::function<std::string(const std::string& state, int number)>& step) {
  throw course::NotWritten("run()");
}

}  // namespace exercise
