// Commands whose calls on files fail: tests/support/faults.cpp.
#pragma once
#include <cerrno>
#include <string>

namespace braid::test {

// The start of such a command, for run() of tests/apps/support.h.
inline std::string preload(const std::string& environment) {
  return "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 LD_PRELOAD=" BRAID_FAULTS " " + environment;
}
inline std::string fault(const std::string& call, const std::string& part, int pass, int fail, int cause) {
  return preload("BRAID_FAULT='" + call + " " + part + " " + std::to_string(pass) + " " + std::to_string(fail) + " " +
                 std::to_string(cause) + "'");
}
inline constexpr int kKilled = -9, kSlow = 0;  // in place of an errno

}  // namespace braid::test
