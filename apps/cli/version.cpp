#include "apps/cli/version.h"

#include <chrono>
#include <cmath>
#include <ctime>

#include "apps/cli/text.h"
#include "braid/tensor/base/processor.h"
#include "braid/tensor/cpu/instruction_sets.h"

namespace braid::apps {
namespace {

std::string instruction_set() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#elif defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "an unknown processor";
#endif
}

}  // namespace

std::string version() { return BRAID_VERSION; }
std::string backends() { return BRAID_BACKENDS; }

std::string compiler() {
#if defined(__clang__)
  const std::string name = str("clang ", __clang_major__, ".", __clang_minor__);
#else
  const std::string name = str("GCC ", __GNUC__, ".", __GNUC_MINOR__);
#endif
  return name + ", " BRAID_BUILD_TYPE ", for " + instruction_set();
}

std::string kernels() { return std::string(cpu::instruction_set().name); }

std::string processor_features() {
  std::vector<std::string> names;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) names.push_back("AVX2");
  if (__builtin_cpu_supports("fma")) names.push_back("FMA");
  if (__builtin_cpu_supports("avx512f")) names.push_back("AVX-512F");
  if (__builtin_cpu_supports("avx512bw")) names.push_back("AVX-512BW");
  if (__builtin_cpu_supports("avx512vnni")) names.push_back("AVX-512VNNI");
  if (detail::has_avx512_bf16()) names.push_back("AVX-512BF16");
  if (detail::has_amx()) names.push_back("AMX");
#endif
  return names.empty() ? "none of AVX2 and AVX-512" : join(names, ", ");
}

std::string version_text() {
  return "braid " + version() + "\ncommit     " + build_commit() + "\nbackends   " + backends() + "\ncompiler   " +
         compiler() + "\nprocessor  " + processor_features() + "; kernels: " + kernels() + "\n";
}

std::string version_line() { return "braid " + version() + ", commit " + build_commit() + ", " + backends(); }

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string time_text(double unix_seconds) {
  const auto seconds = static_cast<std::time_t>(std::floor(unix_seconds));
  std::tm local{};
  if (!::localtime_r(&seconds, &local)) return "unknown";
  char text[64];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &local);  // ends in +0100
  std::string result(text, n);
  if (n > 2) result.insert(n - 2, ":");
  return result;
}

}  // namespace braid::apps
