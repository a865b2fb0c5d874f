// braid-sim: training runs in a simulated world. See README.md.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "braid/tensor/error.h"
#include "tests/simulation/corruption.h"
#include "tests/simulation/judge.h"

using namespace braid;
using namespace braid::simulation;

namespace {

constexpr const char* kUsage =
    "usage: braid-sim [--seeds A..B] [--seconds S] [--first] [--folder DIR]\n"
    "           runs the histories of these seeds, for so long at most, or until the first wrong one\n"
    "       braid-sim --every DxT [--stride K]\n"
    "           each disturbance at each system call and message, on D data x T tensor ranks, or at each K-th of\n"
    "           them, from another one on for the next disturbance\n"
    "       braid-sim --rot N\n"
    "           flips each bit of the headers and small files of a checkpoint and a data set, and N others\n"
    "       braid-sim --replay SEED [--shrink]\n"
    "           prints one as a timeline, or the smallest one made from it that goes wrong too\n";

// Inputs of prepare, and the data set of all runs, whose shards each session reads.
void make_data(const Folders& folders, int64_t shard_tokens) {
  std::filesystem::create_directories(folders.texts);
  Random random(5);
  for (int file = 0; file < 6; ++file) {
    std::string text;
    for (int i = 0; i < 120; ++i) text += std::to_string(random.below(100)) + " ";
    std::ofstream(str(folders.texts, "/", file, ".txt")) << text;
  }
  prepare_data(folders.texts, folders.data, shard_tokens);
}

void print_table(const Judge& judge) {
  std::printf("%-14s %10s %10s   exit codes\n", "session", "number", "in time");
  for (int h = 0; h < kHarms; ++h) {
    const Count& count = judge.counts()[static_cast<size_t>(h)];
    std::string codes;
    for (const auto& [code, times] : count.codes)
      codes += str(code == kPowerLost ? "off" : std::to_string(code).c_str(), ": ", times, "  ");
    std::printf("%-14s %10llu %10llu   %s\n", name(static_cast<Harm>(h)),
                static_cast<unsigned long long>(count.sessions), static_cast<unsigned long long>(count.harmed),
                codes.c_str());
  }
}

int run(uint64_t first, uint64_t last, double seconds, bool to_first, Judge& judge) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  uint64_t done = 0, wrong = 0;
  double elapsed = 0;
  for (uint64_t seed = first; seed <= last && (seconds == 0 || elapsed < seconds) && !(to_first && wrong > 0);
       ++seed, ++done) {
    const History history = history_of(seed);
    const std::string fault = judge.judge(history);
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    if (fault.empty()) continue;
    ++wrong;
    std::printf("%s\n  WRONG: %s\n", history.text().c_str(), fault.c_str());
    std::fflush(stdout);
  }
  print_table(judge);
  std::printf("%llu histories in %.1f s, %.0f a minute: %llu wrong\n", static_cast<unsigned long long>(done), elapsed,
              static_cast<double>(done) * 60 / elapsed, static_cast<unsigned long long>(wrong));
  return wrong == 0 && done > 0 ? 0 : 1;
}

// Each disturbance at each point of a run, with its checkpoints in the background or not, and of a preparation.
int every(int data, int tensor, uint64_t stride, Judge& judge) {
  const History train{.data = data, .tensor = tensor, .steps = 4}, prepare{.prepare = true};
  History beside = train;
  beside.async = true;
  std::vector<std::pair<std::string, Disturbance>> harms = {
      {"killed", {.harm = Harm::kill}},
      {"power loss", {.harm = Harm::power_loss}},
      {"signal", {.harm = Harm::signal}},
      {"EIO once", {.harm = Harm::disk, .error = EIO, .count = 1}},
      {"EIO from here on", {.harm = Harm::disk, .error = EIO, .count = 1'000'000}},
      {"ENOSPC once", {.harm = Harm::disk, .error = ENOSPC, .count = 1}},
      {"ENOSPC from here on", {.harm = Harm::disk, .error = ENOSPC, .count = 1'000'000}},
      {"EINTR once", {.harm = Harm::disk, .error = EINTR, .count = 1}},
      {"short write", {.harm = Harm::short_write, .count = 1}}};
  if (train.ranks() > 1)
    harms.insert(harms.begin(), {{"its rank killed", {.harm = Harm::kill_rank, .rank = -1, .seconds = 30}},
                                 {"its rank frozen, 2 s", {.harm = Harm::freeze_rank, .rank = -1, .seconds = 2}},
                                 {"its rank frozen, 30 s", {.harm = Harm::freeze_rank, .rank = -1, .seconds = 30}},
                                 {"a link of it cut", {.harm = Harm::cut_link, .rank = -1, .seconds = 30}}});
  uint64_t wrong = 0, first = 0;
  std::printf("%-36s %-24s %8s %8s\n", "program", "at each call or message", "places", "wrong");
  for (const History* program : {&train, static_cast<const History*>(&beside), &prepare}) {
    if (program == &prepare && train.ranks() > 1) continue;
    const SessionResult undisturbed = judge.undisturbed(*program);
    const std::string what = program == &prepare
                                 ? "prepare"
                                 : str("train, ", data, " data x ", tensor, " tensor", program->async ? ", async" : "");
    std::printf("%s: %zu calls, %zu messages\n", what.c_str(), undisturbed.on_disk.count(),
                undisturbed.points - undisturbed.on_disk.count());
    for (const auto& [name, harm] : harms) {
      if (harm.harm == Harm::signal && program == &prepare) continue;  // it ends the process, as a kill does
      // What stops all ranks, or a call, is tried at calls: between two of them no message changes the disk.
      const bool messages =
          harm.harm == Harm::kill_rank || harm.harm == Harm::freeze_rank || harm.harm == Harm::cut_link;
      uint64_t seen = first++, places = 0, faults = 0;
      for (uint64_t n = 0; n < undisturbed.points; ++n) {
        if ((!messages && !undisturbed.on_disk[n]) || seen++ % stride != 0) continue;
        ++places;
        History history = *program;
        history.sessions = {harm};
        history.sessions[0].moment = (static_cast<double>(n) + 0.5) / static_cast<double>(undisturbed.points);
        const std::string fault = judge.judge(history);
        if (fault.empty()) continue;
        ++faults;
        std::printf("call %llu, %s\n  WRONG: %s\n", static_cast<unsigned long long>(n), history.text().c_str(),
                    fault.c_str());
      }
      std::printf("%-36s %-24s %8llu %8llu\n", what.c_str(), name.c_str(), static_cast<unsigned long long>(places),
                  static_cast<unsigned long long>(faults));
      std::fflush(stdout);
      wrong += faults;
    }
  }
  return wrong == 0 ? 0 : 1;
}

int replay(uint64_t seed, bool shrink, Judge& judge) {
  History history = history_of(seed);
  if (shrink) history = judge.shrink(history);
  std::printf("%s\n", history.text().c_str());
  const std::string fault = judge.judge(history, true);
  std::printf("%s\n", fault.empty() ? "right" : ("WRONG: " + fault).c_str());
  return fault.empty() ? 0 : 1;
}

// A process whose allocator keeps what is freed, and in which no session looks for the functions of libraries.
void keep_memory(char** arguments) {
  const char* name = "GLIBC_TUNABLES";
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  if (std::getenv(name)) return;
  ::setenv(name,
           "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=4000:glibc.malloc.tcache_max=4096:"
           "glibc.malloc.mmap_threshold=100000000:glibc.malloc.top_pad=4194304",
           1);
  ::setenv("LD_BIND_NOW", "1", 1);
  ::execv(program.c_str(), arguments);
}

}  // namespace

int main(int count, char** arguments) {
  keep_memory(arguments);
  uint64_t first = 0, last = 999, seed = 0, rot = 0, stride = 1;
  double seconds = 0;
  int data = 0, tensor = 0;
  bool replays = false, shrinks = false, to_first = false;
  std::string folder = "/dev/shm";
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i], value = i + 1 < count ? arguments[i + 1] : "";
    if (name == "--seeds" && value.find("..") != std::string::npos) {
      first = std::strtoull(value.c_str(), nullptr, 10);
      last = std::strtoull(value.c_str() + value.find("..") + 2, nullptr, 10), ++i;
    } else if (name == "--seconds" && !value.empty()) {
      seconds = std::atof(value.c_str()), ++i;
    } else if (name == "--folder" && !value.empty()) {
      folder = value, ++i;
    } else if (name == "--replay" && !value.empty()) {
      replays = true, seed = std::strtoull(value.c_str(), nullptr, 10), ++i;
    } else if (name == "--every" && std::sscanf(value.c_str(), "%dx%d", &data, &tensor) == 2) {
      ++i;
    } else if (name == "--stride" && std::strtoull(value.c_str(), nullptr, 10) > 0) {
      stride = std::strtoull(value.c_str(), nullptr, 10), ++i;
    } else if (name == "--rot" && !value.empty()) {
      rot = std::strtoull(value.c_str(), nullptr, 10), ++i;
    } else if (name == "--first") {
      to_first = true;
    } else if (name == "--shrink") {
      shrinks = true;
    } else {
      std::fputs(kUsage, stderr);
      return 2;
    }
  }
  const std::filesystem::path own = str(folder, "/braid-sim-", ::getpid());
  const Folders folders{own / "texts", own / "data", own / "model", own / "answers", own / "disk"};
  int code = 1;
  try {
    make_data(folders, rot > 0 ? 512 : 1 << 20);
    make_model(folders);
    Judge judge(folders);
    code = rot > 0    ? (corrupt_each_bit(folders, judge, rot) > 0 ? 1 : 0)
           : data > 0 ? every(data, tensor, stride, judge)
           : replays  ? replay(seed, shrinks, judge)
                      : run(first, last, seconds, to_first, judge);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
  }
  std::error_code ignored;
  std::filesystem::remove_all(own, ignored);
  return code;
}
