// Functions that the sanitizers call when they have found something. Compiled without them, as the engine.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/cuda/emulation/engine.h"
#include "tests/cuda/emulation/running_thread.h"

using braid::emulated::statistics;

extern "C" void __asan_on_error() {  // say which CUDA thread did it
  const std::string thread = braid::emulated::running_thread();
  if (!thread.empty()) std::fprintf(stderr, "in %s\n", thread.c_str());
}
extern "C" void __tsan_on_report(void*) { ++statistics().data_races; }
// Memory is soon used again, by the same kernel too; and some tests race on purpose, so the sanitizer's own exit code
// would always be that of a fault.
extern "C" const char* __tsan_default_options() {
  return "suppress_equal_addresses=0:suppress_equal_stacks=0:exitcode=0";
}
namespace {
struct RacesFailTheProgram {
  ~RacesFailTheProgram() {
    const uint64_t races = statistics().data_races;
    if (races == 0) return;
    std::fprintf(stderr, "%llu data races that no test expected, see above\n", static_cast<unsigned long long>(races));
    std::_Exit(66);
  }
} races_fail_the_program;
}  // namespace
