// The long test of braid serve: what README.md beside this file says. Exit code 1 where anything was found.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/soak/healthy.h"
#include "tests/soak/phases.h"
#include "tests/soak/server_process.h"

namespace braid::soak {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMemoryGrowth = 64 << 10;  // KiB: what the allocator may keep beyond the server at rest

struct Phase {
  const char* name;
  void (*run)(const Plan&, Report&);
  int64_t count;
  double seconds;
  double rate = 0;
};

void wait(const Plan& plan, Report&) { std::this_thread::sleep_for(std::chrono::duration<double>(plan.seconds)); }

const std::vector<Phase>& phases() {
  static const std::vector<Phase> all = {{"quiet", wait, 0, 20},
                                         {"malformed", malformed_requests, 1000000, 0},
                                         {"aborts", aborted_requests, 100000, 0},
                                         {"slow", slow_clients, 1000, 60},
                                         {"nonces", requests_with_nonces, 100000, 0}};
  return all;
}

void print_faults(const Report& report) {
  for (const std::string& words : report.words()) std::printf("  FAULT %s\n", words.c_str());
  if (const int64_t more = report.faults() - std::ssize(report.words()); more > 0)
    std::printf("  and %lld more\n", static_cast<long long>(more));
}

// Faults of the phase.
int64_t run(const Phase& phase, uint64_t seed, const ServerProcess& server) {
  Report report;
  HealthyClient healthy(server.port(), report);
  const auto begin = Clock::now();
  phase.run({server.port(), phase.count, phase.seconds, seed, phase.rate}, report);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  healthy.stop();
  const int64_t at_end = server.memory_kib();
  if (!server.settle()) report.fault("the server does not come to rest");
  std::printf("%-10s %9lld %8.1f %9.0f %8lld %8.2f %8.2f %9.1f %9.1f %6lld\n", phase.name,
              static_cast<long long>(phase.count), seconds, static_cast<double>(phase.count) / seconds,
              static_cast<long long>(healthy.answers()), healthy.latency(0.5), healthy.latency(0.99),
              static_cast<double>(at_end) / 1024, static_cast<double>(server.memory_kib()) / 1024,
              static_cast<long long>(server.descriptors()));
  for (const auto& [what, count] : report.counts())
    std::printf("  %lld x %s\n", static_cast<long long>(count), what.c_str());
  print_faults(report);
  std::fflush(stdout);
  return report.faults();
}

int64_t run_all(const std::vector<Phase>& chosen, uint64_t seed, const std::string& program,
                const std::filesystem::path& folder) {
  ServerProcess server(program, folder);
  const int64_t blocks = server.used_blocks();
  server.settle();
  ::usleep(500000);  // the end of the last connection
  const int64_t memory = server.memory_kib(), descriptors = server.descriptors();
  std::printf("at rest: %.1f MiB of memory, %lld descriptors\n", static_cast<double>(memory) / 1024,
              static_cast<long long>(descriptors));
  std::printf("%-10s %9s %8s %9s %8s %8s %8s %9s %9s %6s\n", "phase", "count", "seconds", "a second", "healthy",
              "p50 ms", "p99 ms", "MiB", "MiB after", "files");
  int64_t faults = 0;
  for (const Phase& phase : chosen) faults += run(phase, seed, server);
  Report report;
  const int64_t leaked = server.used_blocks() - blocks;
  server.settle();
  for (int i = 0; i < 50 && server.descriptors() != descriptors; ++i) ::usleep(100000);  // of the last connection
  if (leaked != 0) report.fault(std::to_string(leaked) + " blocks of the cache are not free again");
  if (server.descriptors() != descriptors)
    report.fault(std::to_string(server.descriptors()) + " descriptors are open, " + std::to_string(descriptors) +
                 " at the start");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what was freed
  if (server.memory_kib() > memory + kMemoryGrowth)
    report.fault("the memory grew by " + std::to_string((server.memory_kib() - memory) / 1024) + " MiB");
#endif
  const int code = server.stop();
  if (code != 0) report.fault("the server ended with code " + std::to_string(code));
  for (const std::string& line : server.errors()) report.fault("the server wrote: " + line);
  print_faults(report);
  std::printf("%lld faults in the phases; at the end: exit code %d, %lld blocks leaked, %zu lines of errors\n",
              static_cast<long long>(faults), code, static_cast<long long>(leaked), server.errors().size());
  return faults + report.faults();
}

int main(int count, char** words) {
  const auto bad = [] {
    std::fprintf(stderr,
                 "usage: soak_serve BRAID [--seed N] [--phase NAME [--count N] [--seconds S] [--rate R]]...\nphases:");
    for (const Phase& phase : phases()) std::fprintf(stderr, " %s", phase.name);
    std::fprintf(stderr, "\n");
    return 2;
  };
  std::vector<Phase> chosen;
  uint64_t seed = 1;
  if (count < 2 || count % 2 != 0) return bad();
  for (int i = 2; i < count; i += 2) {
    const std::string flag = words[i];
    if (flag == "--phase") {
      for (const Phase& phase : phases())
        if (std::strcmp(phase.name, words[i + 1]) == 0) chosen.push_back(phase);
      if (chosen.empty() || std::strcmp(chosen.back().name, words[i + 1]) != 0) return bad();
    } else if (flag == "--seed") {
      seed = std::strtoull(words[i + 1], nullptr, 10);
    } else if (flag == "--count" && !chosen.empty()) {
      chosen.back().count = std::strtoll(words[i + 1], nullptr, 10);
    } else if (flag == "--seconds" && !chosen.empty()) {
      chosen.back().seconds = std::strtod(words[i + 1], nullptr);
    } else if (flag == "--rate" && !chosen.empty()) {
      chosen.back().rate = std::strtod(words[i + 1], nullptr);
    } else {
      return bad();
    }
  }
  std::signal(SIGPIPE, SIG_IGN);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("braid-soak-" + std::to_string(::getpid()));
  int64_t faults = 1;
  try {
    faults = run_all(chosen.empty() ? phases() : chosen, seed, words[1], folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  std::filesystem::remove_all(folder);
  return faults > 0 ? 1 : 0;
}

}  // namespace
}  // namespace braid::soak

int main(int count, char** words) { return braid::soak::main(count, words); }
