// A solution of exercise 13.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "course/13_safe_run/disk.h"
#include "course/checks.h"

namespace exercise {

using course::Disk;

inline std::string name_of(int step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(8 - digits.size(), '0') + digits;
}
inline int step_of(const std::string& name) {
  if (name.size() != 13 || name.compare(0, 5, "step-") != 0) return -1;
  if (name.find_first_not_of("0123456789", 5) != std::string::npos) return -1;
  return std::stoi(name.substr(5));
}

inline uint32_t checksum(const std::string& bytes) {
  uint32_t r = 0xffffffff;
  for (const char c : bytes) {
    r ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) r = r >> 1 ^ (r & 1 ? 0xedb88320 : 0);
  }
  return ~r;
}

inline std::string head_of(const std::string& state) {
  return "state " + std::to_string(state.size()) + " " + std::to_string(checksum(state)) + "\n";
}
inline std::string pack(const std::string& state) { return head_of(state) + state; }
inline std::optional<std::string> unpack(const std::string& file) {
  const std::string state = file.substr(file.find('\n') + 1);  // npos + 1 is 0
  if (file != pack(state)) return std::nullopt;
  return state;
}

inline void replace(Disk& disk, const std::string& name, const std::string& bytes) {
  const std::string temporary = name + ".tmp";
  disk.create(temporary);
  disk.write(temporary, bytes);
  disk.sync(temporary);
  disk.rename(temporary, name);
  disk.sync_folder();
}

struct Saved {
  int step;
  std::string state;
};
inline std::optional<Saved> load(const Disk& disk) {
  std::optional<Saved> newest;
  for (const std::string& name : disk.list()) {
    const int step = step_of(name);
    if (step < 0 || (newest && step < newest->step)) continue;
    if (const std::optional<std::string> state = unpack(disk.read(name))) newest = Saved{step, *state};
  }
  return newest;
}

inline void save(Disk& disk, int step, const std::string& state, int keep) {
  replace(disk, name_of(step), pack(state));
  const std::vector<std::string> names = disk.list();  // alphabetic, which is the order of the steps
  for (size_t i = names.size(); i-- > 0;) {
    const bool whole = step_of(names[i]) >= 0 && unpack(disk.read(names[i]));
    if (whole && keep > 0)
      --keep;
    else
      disk.remove(names[i]);
  }
}

inline std::string run(Disk& disk, const std::string& start, int steps, int every,
                       const std::function<std::string(const std::string& state, int number)>& step) {
  const Saved from = load(disk).value_or(Saved{0, start});
  std::string state = from.state;
  for (int number = from.step + 1; number <= steps; ++number) {
    state = step(state, number);
    if (number % every == 0 || number == steps) save(disk, number, state, 2);
  }
  return state;
}

}  // namespace exercise
