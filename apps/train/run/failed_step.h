// A step that failed: NaN, Inf or a loss spike. The folder failed-step-N of the run has what reproduces it:
//
//   config.json, model.safetensors, tokenizer, trainer/   the state before the step, in the files of a checkpoint
//   batch.safetensors                                     input_ids and targets (samples of all micro-batches, T)
//   failure.json                                          the reason, the metrics, how often the step has failed
//
// A step is a function of the state before it and of the settings, so the same command would fail at the same step for
// ever: after two failures the next start is rejected until something changes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "braid/models/batch.h"

namespace braid::apps {

struct FailedStep {
  int64_t step = 0;
  int64_t resumed_from = 0;  // step at which the process began that failed
  std::string conditions;    // run_conditions() of that process
  std::string reason;
  double lr = 0, loss = 0, grad_norm = 0;
  std::vector<int64_t> windows;  // of the data set, in the order of the batch
  int64_t times = 1;             // failures with the same step, start and conditions
};

// A checksum of the program and of all settings but the run's folder.
std::string run_conditions(const std::string& settings);

// The record of this failed step; times = 0: there is none.
FailedStep read_failed_step(const std::filesystem::path& run, int64_t step);
// Writes failure.json and batch.safetensors into `folder`, which it makes if need be. Error(output).
void write_failed_step(const std::filesystem::path& folder, const FailedStep& failed,
                       const std::vector<models::Batch>& micro_batches);
// Error(numerical) when a run that begins at this step, under these conditions, has failed twice at the same step.
void check_not_stuck(const std::filesystem::path& run, int64_t resumed_from, const std::string& conditions);

}  // namespace braid::apps
