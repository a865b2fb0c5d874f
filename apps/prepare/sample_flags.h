// The part of `braid prepare` that makes samples for fine-tuning: its flags, and what it prints.
#pragma once
#include <optional>

#include "apps/cli/command.h"
#include "braid/models/data/prepare/samples.h"

namespace braid::apps {

std::vector<Flag> sample_flags();
// None without --answers, --chat and --preferences: the inputs are text. Error(setting) for flags that do not go
// together.
std::optional<models::text::SampleFormat> sample_format(const Arguments& arguments);
// "4000 samples of at most 512 tokens, 31% of the tokens are targets"
std::string words_about_samples(const models::text::SampleSummary& summary);

}  // namespace braid::apps
