// The data that a call of `braid prepare` makes, and the data that its target holds already.
#pragma once
#include "braid/models/data/prepare/prepare.h"
#include "braid/models/data/tokenizers/tokenizer.h"

namespace braid::models::text {

// The part of a manifest that the options determine.
void describe_options(const PrepareOptions& options, const Tokenizer& tokenizer, Manifest& manifest);

// Other data in the target are replaced on request only: Error(setting) without `replace`. `complete`: the manifest of
// the summary is, and the summary learns whether the data are unchanged or replace others; before that, only what the
// options determine is compared, so that most mistakes are found before any work.
void check_replaceable(const PrepareOptions& options, const std::string& target, bool complete,
                       PrepareSummary& summary);

}  // namespace braid::models::text
