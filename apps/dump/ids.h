// The token ids that `braid dump` passes through a model.
#pragma once
#include "apps/cli/command.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/language_model.h"

namespace braid::apps {

struct DumpIds {
  Tensor ids, targets;       // (B, T) integers, on the CPU
  Tensor decode_prompt;      // (B, P), or empty: the first ids of each row
  int64_t decode_steps = 0;  // of --decode
};

// Error(setting) unless exactly one of --ids, --prompt and --text is given.
void check_one_source(const Arguments& arguments);
// True when the ids are those of a text, so that a tokenizer is needed.
bool ids_from_text(const Arguments& arguments);
// Reads them and checks that they fit the model: Error(input) names what is wrong with a file, Error(setting) with a
// flag. `tokenizer` may be null where ids_from_text() does not hold.
DumpIds read_ids(const Arguments& arguments, const models::LanguageModel& model,
                 const models::text::Tokenizer* tokenizer);

}  // namespace braid::apps
