// Losses in bits per byte, which models of different tokenizers share.
//
//   bits per byte = (nats per token) (tokens / bytes) / ln 2
//
// of the validation split; special tokens count as tokens of no bytes. Exact where eval.samples covers the split.
#pragma once
#include <span>

#include "apps/study/study_state.h"

namespace braid::apps {

// The word for a loss as it was trained, by the data of [base]: "nats per token", "nats per image", "nats per pair".
const char* trained_unit(const Study& study);
// The word for a loss in the report: this, or "bits per byte".
const char* loss_unit(const Study& study);
// Error(setting) where the losses of a run with these settings cannot be stated in the unit of the study.
void check_metric(const Study& study, const TrainConfig& config);
// Converts the losses of results, in nats per token, into the unit of the study. Error(setting) as above.
void convert_losses(const Study& study, std::span<StudyResult> results);

}  // namespace braid::apps
