// `braid verify`: trains a segment of a strict run again and compares the weights after each step.
#include <algorithm>
#include <cstdlib>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/train/log/weight_hashes.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/preference_task.h"
#include "apps/train/train.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/checkpoint/manifest.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {

struct Segment {
  int64_t first, last;
};

Segment parse_segment(const std::string& text) {
  const size_t dots = text.find("..");
  const auto first = parse_int(text.substr(0, dots));
  const auto last = dots == std::string::npos ? std::nullopt : parse_int(text.substr(dots + 2));
  check(first && last && *first >= 0 && *last > *first, ErrorKind::setting,
        [&] { return "bad --steps: expected two steps A..B with 0 <= A < B, for example 100..120, found " + text; });
  return {*first, *last};
}

// A folder that rank 0 makes, in which the segment is trained; removed at the end.
class Workplace {
 public:
  explicit Workplace(const dist::Communicator& world) : root_(world.rank() == 0) {
    std::string name;
    at_root(world, [&] {
      std::error_code error;
      name = (fs::temp_directory_path(error) / "braid-verify-XXXXXX").string();
      check(!error && ::mkdtemp(name.data()), ErrorKind::output, [&] {
        return "cannot make a folder " + name + ": " + io::system_message() + "; set TMPDIR to a folder with room";
      });
    });
    path_ = world.gather_text(name).at(0);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace() {
    std::error_code ignored;
    if (root_) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  bool root_;
  fs::path path_;
};

// A checkpoint, or a file beside it. The copies may be written, those of a read-only run too.
void copy_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  const auto copy = [&](const fs::path& file, const fs::path& place) {
    if (!error) fs::create_directories(place.parent_path(), error);
    if (!error) fs::copy_file(file, place, error);
    if (!error) fs::permissions(place, fs::perms::owner_write, fs::perm_options::add, error);
  };
  if (io::is_file(from)) copy(from, to);
  for (const fs::path& file : io::files_below(from)) copy(file, to / file.lexically_relative(from));
  check(!error, ErrorKind::output, [&] {
    return "cannot copy " + from.string() + " to " + to.string() + ": " + error.message() +
           "; set TMPDIR to a folder with room";
  });
}

// What does not reach the weights, off; the segment of the run ends with it.
std::vector<std::string> without_measurements(const fs::path& out) {
  std::vector<std::string> all = {"run.out=" + out.string()};
  for (const char* off :
       {"checkpoint.interval=0", "checkpoint.keep_every=0", "checkpoint.minutes=0", "checkpoint.best=false",
        "checkpoint.async=false", "eval.interval=0", "eval.patience=0", "sample.interval=0", "log.tensorboard=false",
        "log.trace=false", "log.metrics_port=0", "log.metrics_file=", "log.command=", "guard.spike=0"})
    all.push_back(off);
  return all;
}

// The settings of the run after step `first`, where it may have been resumed with others: those of the next checkpoint.
fs::path settings_after(const fs::path& run, int64_t first) {
  for (const models::StepFolder& f : models::step_folders(run))  // rising
    if (f.step > first) return f.path / models::kSettingsFile;
  return run / "config.resolved.toml";
}

// Settings that reach no bit of the weights, and the place of the data.
const std::vector<std::string> kLayout = {
    "parallel.", "train.batch_size", "train.accumulate", "train.recompute", "run.threads", "data.path", "log."};

int64_t step_samples(const TrainConfig& config) { return config.train.batch_size * config.train.accumulate; }

// The first step whose weights differ; 0: none.
int64_t first_difference(const Segment& steps, const std::map<int64_t, uint32_t>& recorded,
                         const std::map<int64_t, uint32_t>& found) {
  for (int64_t step = steps.first + 1; step <= steps.last; ++step)
    if (!found.contains(step) || found.at(step) != recorded.at(step)) return step;
  return 0;
}

int verify(const Arguments& arguments, const Job& job) {
  const Segment steps = parse_segment(arguments.get("steps"));
  const fs::path run = arguments.get("RUN"), file = run / kWeightHashesFile;
  check(io::exists(file), ErrorKind::input, [&] {
    return file.string() +
           " does not exist: expected a run with run.strict = true, which writes the checksum of its "
           "weights after each step";
  });
  const std::map<int64_t, uint32_t> recorded = read_weight_hashes(file);
  for (int64_t step = steps.first + 1; step <= steps.last; ++step)
    check(recorded.contains(step), ErrorKind::setting, [&] {
      return str("bad --steps: ", file.string(), " has no weights of step ", step, ", only of steps up to ",
                 recorded.empty() ? 0 : recorded.rbegin()->first);
    });
  const fs::path checkpoint = run / models::step_name(steps.first);
  if (steps.first > 0) {
    check(io::is_folder(checkpoint), ErrorKind::no_checkpoint, [&] {
      std::string there = "0";
      for (const models::StepFolder& f : models::step_folders(run)) there += str(", ", f.step);
      return checkpoint.string() + " does not exist: expected --steps A..B with a checkpoint at A; there are " + there;
    });
    const auto damage = models::find_damage(checkpoint, job.world());
    check(!damage, ErrorKind::no_checkpoint, [&] { return checkpoint.string() + " is damaged: " + *damage; });
  }

  for (const std::string& setting : arguments.overrides())
    check(std::ranges::any_of(kLayout, [&](const std::string& key) { return setting.starts_with(key); }),
          ErrorKind::setting, [&] {
            return "unexpected setting " + setting + ": braid verify takes those of the layout alone, " +
                   join(kLayout, ", ");
          });
  const fs::path settings = settings_after(run, steps.first);
  const Workplace workplace(job.world());
  dist::run_on_all_ranks(job.world(), [&] {
    check(io::is_folder(workplace.path()), ErrorKind::output, [&] {
      return "there is no folder " + workplace.path().string() +
             ", which the first process has made: set TMPDIR to a folder that all processes see";
    });
  });
  TrainConfig before, config;
  const Schema schema_before = train_schema(before, model_settings()), schema = train_schema(config, model_settings());
  load_config(schema_before, settings, {});
  std::vector<std::string> overrides = without_measurements(workplace.path());
  overrides.push_back(str("train.steps=", before.train.steps));  // train.epochs would count anew, from an empty folder
  overrides.insert(overrides.end(), arguments.overrides().begin(), arguments.overrides().end());
  if (arguments.has("threads")) overrides.push_back("run.threads=" + arguments.get("threads"));
  read_train_settings(config, schema, settings, overrides);
  check(config.run.strict, ErrorKind::setting,
        "run.strict is false: expected a strict run; other runs have other bits on another layout or processor");
  check(step_samples(config) == step_samples(before), ErrorKind::setting, [&] {
    return str("train.batch_size x train.accumulate must be that of the run: expected ", step_samples(before),
               ", found ", step_samples(config));
  });
  check(steps.last <= config.train.steps, ErrorKind::setting, [&] {
    return str("bad --steps: the settings of the run after step ", steps.first, " end at step ", config.train.steps,
               ": expected a segment up to it, and another one from it");
  });
  at_root(job.world(), [&] {
    if (steps.first == 0) return;
    copy_to(checkpoint, workplace.path() / models::step_name(steps.first));
    const fs::path reference = run / PreferenceTask::kReferenceFile;  // computed before the first step
    if (io::exists(reference)) copy_to(reference, workplace.path() / PreferenceTask::kReferenceFile);
  });

  const int code =
      train(config, schema, job, arguments.line(), [&](const LogRow& row) { return row.step < steps.last; });
  if (code == exit_stopped && StopSignals::requested()) return code;
  at_root(job.world(), [&] {
    const std::map<int64_t, uint32_t> found = read_weight_hashes(workplace.path() / kWeightHashesFile);
    const int64_t step = first_difference(steps, recorded, found);
    check(step == 0, ErrorKind::numerical, [&] {
      return str("step ", step, " of ", run.string(), " is not what its settings give: expected weights with checksum ",
                 detail::hex(recorded.at(step), 8), " (", file.string(), "), found ",
                 found.contains(step) ? detail::hex(found.at(step), 8) : "none",
                 "; the run had other settings, data or another program there, or a processor or memory is faulty");
    });
    std::printf("verified: steps %lld to %lld of %s have the recorded weights, %s after the last\n",
                static_cast<long long>(steps.first + 1), static_cast<long long>(steps.last), run.c_str(),
                detail::hex(recorded.at(steps.last), 8).c_str());
  });
  return 0;
}

int run_verify(const Arguments& arguments) {
  Job job;
  return job.run([&] { return verify(arguments, job); });
}

}  // namespace

Command verify_command() {
  return {
      .name = "verify",
      .summary = "train a segment of a strict run again and compare its weights",
      .positionals = {{.name = "RUN", .help = "folder of a run with run.strict = true"}},
      .flags = {{.name = "steps",
                 .value = "A..B",
                 .help = "from the checkpoint of step A (0: from the beginning) to step B",
                 .required = true},
                integer_flag("threads", "N", "same as run.threads=N; 0 = all that the process may use", "", 0, 4096)},
      .overrides = "settings of the layout, such as parallel.data=1; those of the run otherwise",
      .keys = train_setting_names,
      .details =
          "The weights after each step are compared with RUN/weights.csv. Any mesh of ranks, any number of threads\n"
          "and micro-batches and any instruction set gives the same bits. Code 0: all are equal; 5: a step differs.\n"
          "The settings are those of the run after step A. It trains in a temporary folder, which it removes;\n"
          "on several hosts TMPDIR must name one that all of them see.",
      .examples =
          {"braid verify out/run --steps 100..120", "mpirun -np 4 braid verify out/run --steps 0..50",
           "BRAID_INSTRUCTIONS=avx2 braid verify out/run --steps 100..120 train.batch_size=1 train.accumulate=8"},
      .run = run_verify,
      .shared = [](const Arguments&) { return true; },
  };
}

}  // namespace braid::apps
