// Runs of braid train for its tests: a small data set, settings that train on it in a second, what a run leaves.
#pragma once
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <random>
#include <thread>

#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/base/strings.h"
#include "tests/apps/support.h"
#include "tests/apps/train/measured_columns.h"

namespace braid::test {

using detail::join, detail::split;

// One data set for all tests, prepared once; every run folder lies beside it.
struct World {
  Scratch scratch;
  int runs = 0;
  World() {
    std::mt19937 random(5);
    for (int i = 0; i < 40; ++i) {
      std::string text;
      for (int j = 0; j < 100; ++j) text += std::to_string(random() % 100) + " ";
      std::filesystem::create_directories(scratch / "in");
      write(scratch / ("in/" + std::to_string(i) + ".txt"), text);
    }
    const Outcome made = run("prepare " + (scratch / "in").string() + " --val-fraction 0.2 -o " + data().string());
    if (made.code != 0) throw std::runtime_error(made.output);
  }
  std::filesystem::path data() const { return scratch / "data"; }
  std::filesystem::path fresh() { return scratch / ("run-" + std::to_string(runs++)); }
};
inline World& world() {
  static World instance;
  return instance;
}

inline constexpr int kSteps = 10;

inline std::vector<std::string> settings(const std::filesystem::path& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"train", "run.out=" + out.string(), "data.path=" + world().data().string()};
  for (const char* text : {"model.dim=32", "model.n_layer=2", "model.n_head=2", "model.block_size=32", "train.steps=10",
                           "train.batch_size=2", "schedule.warmup=2", "eval.interval=5", "eval.samples=4",
                           "checkpoint.interval=0", "log.interval=1", "guard.spike=0"})
    all.push_back(text);
  all.insert(all.end(), more.begin(), more.end());  // the last one counts
  return all;
}

inline Outcome train(const std::filesystem::path& out, const std::vector<std::string>& more = {},
                     const std::string& before = "") {
  return run(join(settings(out, more), " "), before);
}

// A finished run with these settings at a constant learning rate.
inline std::filesystem::path trained(const std::vector<std::string>& more) {
  const std::filesystem::path out = world().fresh();
  std::vector<std::string> all = {"schedule.name=constant"};
  all.insert(all.end(), more.begin(), more.end());
  const Outcome result = train(out, all);
  BOOST_TEST(result.code == 0, result.output);
  return out;
}

inline std::filesystem::path step(const std::filesystem::path& out, int n) { return out / models::step_name(n); }

inline std::string weights(const std::filesystem::path& checkpoint) {
  return slurp(checkpoint / "model.safetensors") + slurp(checkpoint / "trainer/optimizer.safetensors");
}

inline std::string deterministic_log(const std::filesystem::path& out) {
  return without_measured_columns(slurp(out / "log.csv"));
}

// The run that nothing disturbed.
inline const std::filesystem::path& undisturbed() {
  static const std::filesystem::path out = [] {
    const std::filesystem::path path = world().fresh();
    const Outcome result = train(path);
    if (result.code != 0) throw std::runtime_error(result.output);
    return path;
  }();
  return out;
}

inline void check_same(const std::filesystem::path& out, const std::filesystem::path& expected = undisturbed(),
                       int n = kSteps) {
  BOOST_TEST(weights(step(out, n)).size() > 10000u);
  BOOST_TEST((weights(step(out, n)) == weights(step(expected, n))));
  BOOST_TEST(deterministic_log(out) == deterministic_log(expected));
  for (const auto& entry : std::filesystem::directory_iterator(out)) BOOST_TEST(entry.path().extension() != ".tmp");
}

inline void check_failure(const Outcome& result, int code, const std::string& words) {
  BOOST_TEST(result.code == code, result.output);
  BOOST_TEST(split(result.output, '\n').size() > 1u);
  BOOST_TEST(result.output.find("error: ") != std::string::npos, result.output);
  BOOST_TEST(result.output.find(words) != std::string::npos, "no '" << words << "' in: " << result.output);
}

inline bool saving(const std::filesystem::path& out) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(out, ignored))
    if (entry.path().extension() == ".tmp") return true;
  return false;
}

inline void read_until(Process& process, const std::string& words) {
  for (std::string line; !(line = process.line()).empty();)
    if (line.find(words) != std::string::npos) return;
  BOOST_FAIL("the run ended before it said " << words);
}

inline void flip_byte(const std::filesystem::path& file) {
  std::string bytes = slurp(file);
  bytes[bytes.size() / 2] ^= 0x10;
  write(file, bytes);
}

inline void sleep_us(int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

}  // namespace braid::test
