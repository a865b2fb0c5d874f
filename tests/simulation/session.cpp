#include "tests/simulation/session.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>

#include "apps/train/run/job.h"
#include "apps/train/task/from_config.h"
#include "apps/train/train.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/data/prepare/prepare.h"
#include "braid/models/registry.h"
#include "tests/simulation/serving.h"
#include "tests/simulation/system_calls.h"
#include "tests/simulation/transport.h"

namespace braid::simulation {

namespace {

struct Settings {
  apps::TrainConfig config;
  apps::Schema schema = apps::train_schema(config, models::model_settings());
  Settings(const History& history, const Folders& folders, const std::vector<std::string>& more = {}) {
    std::vector<std::string> texts = history.settings();
    texts.push_back("run.out=" + folders.run());
    texts.push_back("data.path=" + folders.data);
    texts.insert(texts.end(), more.begin(), more.end());
    apps::read_train_settings(config, schema, "", texts);
  }
};

// The settings of this history and of the next ones like it, read before its sessions are forked.
const Settings* settings_of(const History& history, const Folders& folders) {
  static std::vector<std::string> texts;
  static std::unique_ptr<const Settings> settings;
  if (history.prepare || history.clients > 0) return nullptr;
  if (!settings || texts != history.settings()) settings = std::make_unique<Settings>(history, folders);
  texts = history.settings();
  return settings.get();
}

class Session {
 public:
  Session(const Folders& folders, const Settings* settings, const History& history, const Disturbance& disturbance,
          uint64_t seed, uint64_t points, bool trace, SessionResult& shared)
      : folders_(folders),
        settings_(settings),
        history_(history),
        disturbance_(disturbance),
        at_(static_cast<uint64_t>(disturbance.moment * static_cast<double>(points))),
        trace_(trace),
        shared_(shared),
        random_(seed),
        scheduler_(random_.next()),
        disk_(folders.root, disturbance.harm == Harm::power_loss),
        network_(scheduler_, random_.next(), history.ranks(), [this](const char* call) { message_sent(call); }),
        world_{scheduler_,
               disk_,
               Random(random_.next()),
               [this](const char* call, const std::string& path) { return before(call, path); },
               static_cast<int>(1 + random_.below(99'999)),
               !history.prepare,
               history.clients > 0},
        serving_(folders, history, world_, shared, random_.next()) {}

  [[noreturn]] void run() {
    std::vector<int> codes(static_cast<size_t>(history_.ranks()));
    std::vector<std::function<void()>> bodies;
    if (history_.clients > 0) bodies = serving_.bodies(codes[0]);
    for (int r = 0; r < history_.ranks() && history_.clients == 0; ++r)
      bodies.emplace_back([this, r, &codes] { codes[static_cast<size_t>(r)] = rank(r); });
    set_world(&world_);
    scheduler_.run(bodies, [] { ::_exit(kKilled); });
    ::_exit(codes[0]);
  }

 private:
  // As a process of a job: an error of all ranks is the exit code of each, an error of one ends the job.
  int rank(int r) {
    int code = 70;
    std::string message;
    try {
      if (history_.prepare) return prepare_data(folders_.texts, folders_.prepared(), 512), 0;
      dist::Communicator world;
      if (history_.ranks() > 1) world = dist::Communicator(network_.transport(r));
      return apps::train(settings_->config, settings_->schema, apps::Job(world), "braid train",
                         [this, r](const apps::LogRow& row) {
                           if (r == 0) observe(row.step);
                           return true;
                         });
    } catch (const dist::CollectiveError& e) {
      say(e.what());
      return static_cast<int>(e.kind());
    } catch (const Error& e) {
      code = static_cast<int>(e.kind());
      message = e.what();
    } catch (const std::exception& e) {
      message = e.what();
    }
    if (r != 0) scheduler_.sleep_until(scheduler_.now() + 0.5);
    say(message);
    ::_exit(code);
  }

  // After each step, before its checkpoint: those of the steps before are finished, if no call has failed.
  void observe(int64_t step) {
    if (shared_.resumed < 0) shared_.resumed = step - 1;
    shared_.last = step;
    const bool writes_failed =
        shared_.harmed && (disturbance_.harm == Harm::disk || disturbance_.harm == Harm::short_write);
    // The newest one, or in the background the one before it: the next one does not begin earlier.
    const int64_t saved = ((step - 1) / history_.interval - (history_.async ? 1 : 0)) * history_.interval;
    if (!writes_failed && saved > shared_.resumed) shared_.safe = saved;
  }

  void say(const std::string& text) { std::snprintf(shared_.message, sizeof shared_.message, "%s", text.c_str()); }
  void print(const char* call, const std::string& path) const {
    if (!trace_) return;
    std::printf("    %9.5f s  %6llu  rank %d  %-9s %s\n", scheduler_.now(),
                static_cast<unsigned long long>(shared_.points), Scheduler::self(), call,
                path.starts_with(folders_.root + "/") ? path.c_str() + folders_.root.size() + 1 : "");
    std::fflush(stdout);
  }

  void message_sent(const char* call) {
    scheduler_.point();
    before(call, "");
  }

  Outcome before(const char* call, const std::string& path) {
    if (scheduler_.now() > 1e5) ::_exit(kHung);
    if (scheduler_.now() >= job_ends_) ::_exit(kKilled);
    print(call, path);
    const uint64_t number = shared_.points++;
    if (number < shared_.on_disk.size()) shared_.on_disk[number] = !path.empty();
    if (number == at_) harm();
    if (number < at_ || path.empty() || failures_ >= disturbance_.count) return {};
    const Disturbance& d = disturbance_;
    const std::string name = call;
    const bool shortens = path == kSocket ? name != "accept" && name != "epoll" : std::strstr(call, "write") != nullptr;
    if (d.harm == Harm::short_write && shortens) return ++failures_, shared_.harmed = true, Outcome{.half = true};
    if (d.harm != Harm::disk || (!d.call.empty() && d.call != call) || !can_fail(name, path == kSocket)) return {};
    ++failures_, shared_.harmed = true;
    print("  fails", std::string(folders_.root) + " " + std::strerror(d.error));
    return {.error = d.error};
  }

  // Whether this call can give the error at all.
  bool can_fail(const std::string& call, bool socket) const {
    const int error = disturbance_.error;
    if (socket)
      return error == EINTR || (call == "accept" && (error == EMFILE || error == ECONNABORTED)) ||
             (error == ECONNRESET && (call == "recv" || call == "send"));
    if (error == ECONNRESET || error == ECONNABORTED) return false;
    if (error == EINTR)
      return call == "open" || call == "write" || call == "pwrite" || call == "read" || call == "pread" ||
             call == "fallocate" || call == "ftruncate" || call == "fsync";
    if (error == EMFILE) return call == "open";
    if (error == ENOSPC || error == EDQUOT)
      return call == "write" || call == "pwrite" || call == "fallocate" || call == "mkdir" || call == "rename" ||
             call == "fsync";
    return true;
  }

  void harm() {
    const Disturbance& d = disturbance_;
    if (d.harm == Harm::none || d.harm == Harm::disk || d.harm == Harm::short_write || d.harm == Harm::bit_rot) return;
    shared_.harmed = true;
    const int rank = d.rank < 0 ? Scheduler::self() : d.rank,
              other = d.rank < 0 ? (rank + 1) % history_.ranks() : d.other;
    print("  harm", folders_.root + " " + d.text());
    switch (d.harm) {
      case Harm::kill:
        ::_exit(kKilled);
      case Harm::power_loss:
        set_world(nullptr);
        disk_.lose_power(folders_.root + ".after", random_ = Random(random_.next() + at_));
        ::_exit(kPowerLost);
      case Harm::signal:
        history_.clients > 0 ? serving_.signal() : static_cast<void>(std::raise(SIGTERM));
        break;
      case Harm::kill_rank:
        job_ends_ = scheduler_.now() + d.seconds;
        scheduler_.freeze(rank, kNever);
        break;
      case Harm::freeze_rank:
        scheduler_.freeze(rank, scheduler_.now() + d.seconds);
        break;
      case Harm::cut_link:
        network_.cut(rank, other, d.seconds > 10 ? kNever : scheduler_.now() + d.seconds);
        break;
      default:
        break;
    }
  }

  const Folders& folders_;
  const Settings* const settings_;  // of training
  const History& history_;
  const Disturbance& disturbance_;
  const uint64_t at_;
  const bool trace_;
  SessionResult& shared_;
  Random random_;
  Scheduler scheduler_;
  Disk disk_;
  Network network_;
  World world_;
  Serving serving_;
  int failures_ = 0;
  double job_ends_ = kNever;
};

}  // namespace

void prepare_data(const std::string& texts, const std::string& output, int64_t shard_tokens) {
  models::text::prepare({.inputs = {texts},
                         .val_inputs = {},
                         .output = output,
                         .tokenizer = "",
                         .val_fraction = 0.2,
                         .shard_tokens = shard_tokens,
                         .dedup = true});
}

void make_model(const Folders& folders) {
  std::filesystem::create_directories(folders.answers);
  const Settings settings({}, folders, {"run.out=" + folders.model, "model.block_size=32"});
  std::fflush(stdout);
  const int out = ::dup(STDOUT_FILENO);
  std::freopen("/dev/null", "w", stdout);
  const int code = apps::train(settings.config, settings.schema, apps::Job(dist::Communicator()), "braid train", {});
  std::fflush(stdout);
  ::dup2(out, STDOUT_FILENO);
  ::close(out);
  if (code != 0) throw std::runtime_error(str("cannot train the model of serve: code ", code));
}

int in_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

SessionResult run_session(const Folders& folders, const History& history, const Disturbance& disturbance, uint64_t seed,
                          uint64_t points, bool trace) {
  static SessionResult& shared = *static_cast<SessionResult*>(
      ::mmap(nullptr, sizeof(SessionResult), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  new (&shared) SessionResult;
  const Settings* const settings = settings_of(history, folders);
  shared.code = in_child([&]() -> int {
    ::alarm(60);
    if (!trace && !std::freopen("/dev/null", "w", stdout)) return 70;
    if (!trace && history.clients > 0 && !std::freopen("/dev/null", "w", stderr)) return 70;
    Session(folders, settings, history, disturbance, seed, points, trace, shared).run();
  });
  if (shared.code == kPowerLost) {
    std::filesystem::remove_all(folders.root);
    std::filesystem::rename(folders.root + ".after", folders.root);
  }
  return shared;
}

}  // namespace braid::simulation
