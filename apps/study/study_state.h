// The folder of a study, by which it resumes where it stopped:
//
//   study.json              its name, and the fingerprint of each data folder
//   runs/NAME/              a run of braid train (apps/train/run/run_folder.md)
//   runs/NAME/study.json    the settings that the run was started with
//   runs/NAME/families.csv  in-context accuracy by family at each checkpoint, with study.families
//   runs/NAME/coordinates.csv  sizes of activations at each checkpoint, with study.coordinates
//   runs/NAME/result.json   what came out: the run is finished
//   report/                 tables, charts, report.md
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/study/study_runs.h"
#include "apps/train/config/flops.h"

namespace braid::apps {

struct FamilyAccuracy {
  int64_t step = 0;
  std::string family;
  double accuracy = 0;  // 0..1, averaged over the tasks of the family
};

struct ActivationSize {
  int64_t step = 0, width = 0;
  std::string quantity;
  double size = 0;  // mean absolute value
};

struct StudyResult {
  StudyRun run;
  double parameters = 0, non_embedding = 0;
  double tokens = 0, flops = 0;  // of the whole training
  double loss = 0;               // validation, in nats per token; infinite: a run of the search that diverged
  double task_accuracy = 0;      // NaN: not measured
  double seconds = 0;            // of training, on the machine of the run
  std::vector<FamilyAccuracy> families;
  std::vector<ActivationSize> coordinates;
};

// Error(setting) where braid train would reject the settings of a run, or the step that it makes of them, but for a
// warmup of unknown steps; and where losses could not be compared. No data are needed.
void check_runs(const Study& study, const std::vector<StudyRun>& runs);
// Checks the runs and their data, then makes the folder, or checks that it is this study's and that the data are those
// it began with. Error(setting).
void open_study(const Study& study, const std::vector<StudyRun>& runs);
// After a run of the search that ended with NaN or a spike of the loss: its result is an infinite loss.
void finish_diverged(const Study& study, const StudyRun& run);
// Before a run: writes its settings, or checks that those in its folder are the same but for threads, device, log and
// checkpoints. Error(setting) names the difference.
void begin_run(const Study& study, const StudyRun& run);
// After it: measures and writes the result.
void finish_run(const Study& study, const StudyRun& run);
// None while the run is not finished. Error(setting) where it was made with other settings.
std::optional<StudyResult> read_result(const Study& study, const StudyRun& run);
// The model of a run, with the FLOPs of a sample: of its data, or of a blank one where they are not here.
struct RunModel {
  std::unique_ptr<const models::ModelSpec> spec;
  int64_t seq_len = 0;
  bool has_data = false;
  SampleFlops sample;
};
RunModel model_of(const RunSettings& settings);
// FLOPs of the training of a run, and its tokens.
struct RunCost {
  double parameters = 0, non_embedding = 0, tokens = 0, flops = 0;
};
RunCost cost_of(const RunSettings& settings);

}  // namespace braid::apps
