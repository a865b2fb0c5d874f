#include "tests/simulation/judge.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "apps/cli/text.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "tests/apps/train/measured_columns.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/serving.h"

namespace braid::simulation {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kSeed = 0x5EED;

// Exit codes that a disturbance explains.
std::set<int> codes_of(const Disturbance& d, bool serves) {
  if (serves && d.harm == Harm::signal) return {0, 128 + SIGTERM};
  if (serves && d.harm == Harm::disk && d.error != EINTR) return {0, 2, 4};  // of the file with the port
  switch (d.harm) {
    case Harm::kill:
      return {0, kKilled};
    case Harm::power_loss:
      return {0, kPowerLost};
    case Harm::signal:
      return {0, 75, 128 + SIGTERM};  // before there is a handler
    case Harm::kill_rank:
      return {0, 6, kKilled};
    case Harm::freeze_rank:
    case Harm::cut_link:
      return {0, 6};
    case Harm::disk:
      return d.error == EINTR ? std::set<int>{0} : std::set<int>{0, 3, 4};
    default:
      return {0};
  }
}

}  // namespace

void Judge::clear() const {
  fs::remove_all(folders_.root);
  fs::create_directories(folders_.root);
}

std::map<std::string, std::string> Judge::result_of(const History& history) const {
  std::map<std::string, std::string> files;
  if (history.clients > 0) return files;
  if (history.prepare) {
    for (const auto& entry : fs::recursive_directory_iterator(folders_.root))
      if (entry.is_regular_file()) files[entry.path().string()] = Disk::bytes_of(entry.path().string());
    return files;
  }
  const std::string step = models::step_name(history.steps);
  for (const std::string& file :
       {step + "/model.safetensors", step + "/trainer/optimizer.safetensors", std::string("latest")})
    files[file] = Disk::bytes_of(folders_.run() + "/" + file);
  files["log.csv"] = test::without_measured_columns(Disk::bytes_of(folders_.run() + "/log.csv"));
  for (const auto& entry : fs::recursive_directory_iterator(folders_.run()))
    if (const std::string path = entry.path().string(); path.find(".tmp") != std::string::npos)
      files[path] = "left over";
  return files;
}

const Judge::Reference& Judge::reference(const History& history) {
  if (history.clients > 0 && !history.alone && !references_.contains("serve 1 0"))
    for (int kind = 0; kind < kRequests; ++kind) reference({.clients = 1, .alone = kind});
  const std::string key = history.clients > 0 ? str("serve ", history.clients, " ", history.alone.value_or(-1))
                          : history.prepare   ? "prepare"
                                              : apps::join(history.settings(), " ");
  const auto found = references_.find(key);
  if (found != references_.end()) return found->second;
  clear();
  const SessionResult result = run_session(folders_, history, {}, Random(kSeed).next(), 0, false);
  if (result.code != 0)
    throw std::runtime_error(str("the undisturbed run ended with code ", result.code, ": ", result.message));
  Reference reference{result, result_of(history)};
  for (const auto& [file, bytes] : reference.files)
    if (bytes.empty()) throw std::runtime_error("the undisturbed run left no " + file);
  return references_[key] = std::move(reference);
}

int Judge::rot(Random& random, bool trace) const {
  std::vector<std::string> files;
  std::error_code ignored;
  int checkpoints = 0;
  for (const auto& step : fs::directory_iterator(folders_.run(), ignored)) {
    const std::string name = step.path().filename().string();
    if (!name.starts_with("step-") || name.ends_with(".tmp")) continue;
    ++checkpoints;
    for (const auto& file : fs::recursive_directory_iterator(step.path()))
      if (file.is_regular_file() && file.file_size() > 0) files.push_back(file.path().string());
  }
  if (files.empty()) return 0;
  std::ranges::sort(files);
  const std::string path = random.any_of(files);
  std::string bytes = Disk::bytes_of(path);
  const uint64_t bit = random.below(8 * bytes.size());
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  std::ofstream(path, std::ios::binary) << bytes;
  if (trace) std::printf("    bit %llu of %s flips\n", static_cast<unsigned long long>(bit), path.c_str());
  return checkpoints;
}

std::string Judge::judge(const History& history, bool trace) {
  const Reference& expected = reference(history);
  Random random(history.seed ^ kSeed);
  clear();
  std::vector<Disturbance> sessions = history.sessions;
  sessions.emplace_back();
  int64_t safe = 0;  // the step of the newest checkpoint that was finished
  int flips = 0;
  bool lost = false;       // all checkpoints may be damaged
  bool rows_lost = false;  // a disk that took no rows of the log until the end, and said so
  bool complete = false;   // the last session was not disturbed
  for (const Disturbance& d : sessions) {
    if (complete && d.harm == Harm::none) break;
    if (d.harm == Harm::bit_rot) {
      const int checkpoints = rot(random, trace);
      if (checkpoints == 1 && safe >= 2 * history.interval) return "one checkpoint is left, of two that were finished";
      if (checkpoints > 0) safe = 0;
      lost = lost || ++flips >= checkpoints;
    }
    if (trace) std::printf("  %s\n", d.text().c_str());
    const SessionResult result = run_session(folders_, history, d, random.next(), expected.session.points, trace);
    if (trace)
      std::printf("  code %d, steps after %lld to %lld, checkpoint %lld finished %s\n", result.code,
                  static_cast<long long>(result.resumed), static_cast<long long>(result.last),
                  static_cast<long long>(result.safe), result.message);
    Count& count = counts_[static_cast<size_t>(d.harm)];
    ++count.sessions;
    count.harmed += result.harmed;
    ++count.codes[result.code];
    if (lost && result.code == 7) return "";  // all that there was is damaged, and it says so
    if (!codes_of(d, history.clients > 0).contains(result.code))
      return str(d.text(), ": exit code ", result.code, " ", result.message);
    if (result.resumed >= 0 && result.resumed < safe)
      return str("the checkpoint of step ", safe, " was finished, but the next session resumed after step ",
                 result.resumed);
    rows_lost = rows_lost || (d.harm == Harm::disk && result.code == 4);
    complete = !result.harmed;
    safe = std::max(safe, result.safe);
    if (result.code == 75) safe = std::max(safe, result.last);
  }
  if (history.clients > 0) return "";
  const auto kept =
      std::ranges::count_if(fs::directory_iterator(history.prepare ? folders_.root : folders_.run()),
                            [](const auto& entry) { return entry.path().filename().string().starts_with("step-"); });
  const auto damaged = std::ranges::count(history.sessions, Harm::bit_rot, &Disturbance::harm);  // they count for none
  if (kept > history.keep + (history.best ? 1 : 0) + damaged)
    return str(kept, " checkpoints are kept, expected ", history.keep);
  const std::map<std::string, std::string> found = result_of(history);
  if (found.size() < expected.files.size()) return "files are missing";
  for (const auto& [file, bytes] : found) {
    const auto want = expected.files.find(file);
    if (want == expected.files.end()) return file + " is left over";
    if (want->second != bytes && !(rows_lost && file == "log.csv"))
      return file + " differs from that of the undisturbed run";
  }
  return "";
}

History Judge::shrink(History history) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    std::vector<History> attempts;
    for (size_t i = 0; i < history.sessions.size() && history.sessions.size() > 1; ++i) {
      attempts.push_back(history);
      attempts.back().sessions.erase(attempts.back().sessions.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (history.ranks() > 1) {
      attempts.push_back(history);
      attempts.back().data = attempts.back().context = attempts.back().tensor = 1;
    }
    if (history.clients > 1) attempts.push_back(history), --attempts.back().clients;
    if (history.async) attempts.push_back(history), attempts.back().async = false;
    if (history.best) attempts.push_back(history), attempts.back().best = false;
    if (history.steps > 3) attempts.push_back(history), --attempts.back().steps;
    for (const History& attempt : attempts) {
      if (judge(attempt).empty()) continue;
      history = attempt;
      smaller = true;
      break;
    }
  }
  return history;
}

}  // namespace braid::simulation
