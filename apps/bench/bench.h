// The parts of `braid bench`, one file each; step.cpp has the command.
#pragma once
#include <memory>
#include <string>

#include "apps/cli/command.h"
#include "braid/models/model_spec.h"
#include "braid/models/training/trainer.h"

namespace braid::apps {

// The model that --preset and settings describe, and a batch of --batch random samples: sequences of --seq-len tokens,
// or images.
struct BenchModel {
  std::unique_ptr<const models::ModelSpec> spec;
  models::Batch batch;
  int64_t tokens = 1;  // of a sample; an image counts as one
  bool images = false;
};
BenchModel bench_model(const Arguments& arguments);
// The record of attention_uses() as a JSON list.
std::string attention_json();

// braid bench comm: times the collectives of this job, and the backward pass of a model with its gradients sent after
// it and during it.
int bench_comm(const Arguments& arguments);

// braid bench decode: times prompts of --context tokens and the steps behind them, of a preset or of the model in
// --model.
int bench_decode(const Arguments& arguments);

// braid bench step --dry: what a training step launches, moves and holds on a GPU that is not there.
int bench_dry_step(const Arguments& arguments);

}  // namespace braid::apps
