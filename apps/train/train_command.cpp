// `braid train`: its flags and help, and the settings that they make. The training itself: train.cpp.
#include <cstdio>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/train/plan/dry_run.h"
#include "apps/train/plan/plan_command.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/run_data.h"
#include "apps/train/train.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {

int prepare_and_train(const Arguments& arguments, const Job& job) {
  TrainConfig config;
  const Schema schema = train_schema(config, model_settings());
  std::vector<std::string> overrides = arguments.overrides();
  if (arguments.has("device")) overrides.push_back("run.device=" + arguments.get("device"));
  if (arguments.has("threads")) overrides.push_back("run.threads=" + arguments.get("threads"));
  const std::vector<std::string> notes = read_train_settings(config, schema, arguments.get("CONFIG"), overrides);
  if (job.world().rank() == 0) print_notes(notes);
  check_plan_flags(arguments);
  if (arguments.has("print-config")) {
    const bool named = !config.model.preset.empty() || !config.model.values.empty() || !config.train.init_from.empty();
    std::fputs(
        (named ? print_config(schema, settings_in_effect(config)) + start_comments(config) : print_config(schema))
            .c_str(),
        stdout);
    return 0;
  }
  if (arguments.has("dry-run")) {
    if (config.run.threads > 0) set_threads(static_cast<int>(config.run.threads));
    return print_plan(config, arguments, job);
  }
  return train(config, schema, job, arguments.line());
}

int run_train(const Arguments& arguments) {
  Job job;
  return job.run([&] { return prepare_and_train(arguments, job); });
}

}  // namespace

std::vector<std::string> read_train_settings(TrainConfig& config, const Schema& schema, fs::path file,
                                             std::vector<std::string> overrides) {
  if (const fs::path resolved = file / "config.resolved.toml"; io::is_folder(file) && io::exists(resolved)) {
    overrides.insert(overrides.begin(), "run.out=" + file.string());  // where the run is now
    file = resolved;
  }
  std::vector<std::string> notes = load_config(schema, file, overrides);
  if (const std::string steps = set_steps_by_epochs(config, overrides); !steps.empty()) notes.push_back(steps);
  return notes;
}

Command train_command() {
  Command command{
      .name = "train",
      .summary = "train a model, or resume a run",
      .positionals = {{.name = "CONFIG",
                       .help = "TOML file with the settings, or the folder of a run",
                       .required = false}},
      .flags = {{.name = "print-config", .help = "print every setting with its value and meaning, then stop"},
                {.name = "device", .value = "DEVICE", .help = "same as run.device=DEVICE: auto, cpu, cuda or cuda:N"},
                integer_flag("threads", "N", "same as run.threads=N; 0 = all that the process may use", "", 0, 4096)},
      .overrides = "settings, which beat the file; --print-config lists them",
      .keys = train_setting_names,
      .details =
          "model.preset=NAME on the command line replaces the section [model] of the file, and a note names its keys;\n"
          "other keys of the command line change that preset, in any order.\n"
          "The run folder run.out holds config.resolved.toml, log.csv, log.jsonl, samples.txt, status.json and\n"
          "checkpoints step-*; with log.tensorboard=true also tensorboard/. braid status shows it from elsewhere.\n"
          "config.resolved.toml has every setting, those of the model that follow from others in comments: with it\n"
          "alone the run is repeated (it has the last ones of a run that was resumed with others).\n"
          "A run folder with a valid checkpoint is resumed from it, bit for bit. Model, data, seed, type of the\n"
          "master weights and kind of optimizer must be the same then; other settings may change, and each change is\n"
          "printed. So may the context: braid train out/run model.block_size=256 data.seq_len=256 continues with\n"
          "longer sequences where positions are rotary.\n"
          "train.init_from=FOLDER starts from the weights of a model or run, with model.use_dcmha=true as a DCFormer.\n"
          "optimizer.groups gives parameters another learning rate or decay, or freezes them; lora.rank trains LoRA.\n"
          "Data of braid prepare --preferences are trained on by direct preference optimization (dpo.*), with the "
          "weights\n"
          "of train.init_from as the reference.\n"
          "On a GPU one process captures its step as a CUDA graph and replays it (train.graph=false launches every\n"
          "kernel); several processes launch every kernel.\n"
          "SIGINT, SIGTERM, SIGUSR1 and SIGHUP save the state and end with exit code 75: run the same command again.\n"
          "The files latest and best (checkpoint.best) name checkpoints; braid generate RUN/best takes that one.\n"
          "A step with NaN or a loss spike ends the run with code 5. Its state, batch and reason go to failed-step-N,\n"
          "from which nothing resumes; the message says what does. When it fails twice with the same settings, the\n"
          "next start is rejected.\n"
          "A file that cannot be written is tried again; the third failure in a row ends with code 4.\n"
          "When the reader of standard output goes away (| head), the run continues to its end.",
      .examples = {"braid train configs/demo.toml", "braid train out/run train.steps=2000",
                   "braid train configs/demo.toml optimizer.lr=1e-3 run.out=out/faster",
                   "braid train configs/demo.toml --dry-run",
                   "braid train model.preset=dcpythia-6.9b train.dtype=bf16 train.batch_size=64 parallel.tensor=8 "
                   "--dry-run --for h100x64",
                   "braid train run.out=out/composed data.path=out/data train.init_from=out/plain model.use_dcmha=true",
                   "braid train run.out=out/preferred data.path=out/pairs train.init_from=out/tuned optimizer.lr=1e-4",
                   "mpirun -np 4 braid train configs/demo.toml parallel.tensor=2"},
      .run = run_train,
      .shared = [](const Arguments&) { return true; },
  };
  for (Flag& flag : plan_flags()) command.flags.push_back(std::move(flag));
  return command;
}

}  // namespace braid::apps
