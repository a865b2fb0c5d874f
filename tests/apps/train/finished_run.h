// Runs of braid train that are made by train_in(folder), and what they leave.
#pragma once
#include <stdexcept>

#include "tests/apps/train/runs.h"

namespace braid::test {

// The new folder of a run that ends well.
template <class Train>
std::filesystem::path finished_run(const Train& train_in) {
  const std::filesystem::path path = world().fresh();
  const Outcome result = train_in(path);
  if (result.code != 0) throw std::runtime_error(result.output);
  return path;
}

// Without its last checkpoint the run resumes from the one before it, and ends with the same bits.
template <class Train>
void check_resumes(const std::filesystem::path& out, const std::filesystem::path& expected, const Train& train_in) {
  std::filesystem::remove_all(step(out, kSteps));
  const Outcome again = train_in(out);
  BOOST_TEST(again.code == 0, again.output);
  BOOST_TEST(again.output.find("resuming from") != std::string::npos, again.output);
  check_same(out, expected);
}

}  // namespace braid::test
