// The work of `braid prepare --answers` and `--chat`: JSON objects in, each a sample, a data folder whose tokens carry
// marks out (data_folder.md). Samples stay whole: each is one document, and training packs them into sequences
// (packing.h).
#pragma once
#include "braid/models/data/prepare/chat.h"
#include "braid/models/data/prepare/prepare.h"

namespace braid::models::text {

struct SampleSummary {
  PrepareSummary prepared;
  int64_t counted = 0;  // tokens of all samples that are targets
  int64_t longest = 0;  // tokens of the longest sample
};

// As prepare(), of `inputs`, `val_inputs`, `output`, `replace`, `tokenizer`, `val_fraction`, `seed` and
// `shard_tokens`: on all threads, and a call that was stopped is resumed.
// A sample goes to validation when a hash of its line and the seed says so; of several samples at least one does, and
// at least one does not. Lines without an answer are left out, with a note. Error(input) names file and line.
SampleSummary prepare_samples(const PrepareOptions& options, const SampleFormat& format,
                              const std::function<void(const PrepareProgress&)>& progress = {});

}  // namespace braid::models::text
