// Study files, and what braid study says of them.
#pragma once
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "tests/apps/train/runs.h"

namespace braid::test {

inline std::filesystem::path file_of(const std::string& text) {
  static int count = 0;
  const std::filesystem::path file = world().scratch / ("study-" + std::to_string(count++) + ".toml");
  write(file, text);
  return file;
}

inline void check_rejected(const std::filesystem::path& file, const std::string& part, const std::string& flags = "") {
  const Outcome got = run("study " + file.string() + flags);
  BOOST_TEST(got.code == 2, got.output);
  BOOST_TEST(got.output.find(part) != std::string::npos, got.output << " lacks " << part);
  BOOST_TEST(std::ranges::count(got.output, '\n') == 1, got.output);
}

// Without the header and the empty line at the end.
inline size_t rows_of(const std::filesystem::path& csv) { return split(slurp(csv), '\n').size() - 2; }

}  // namespace braid::test
