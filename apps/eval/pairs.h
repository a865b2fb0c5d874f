// braid eval MODEL pairs:TASK: the share of pairs of sequences that an encoder-decoder decodes without a mistake.
#pragma once
#include "apps/cli/command.h"

namespace braid::apps {

bool names_pairs(const Arguments& arguments);  // whether a task begins with models::kPairsPrefix
// The validation split of each task, decoded greedily. Prints a line each; --json FILE gets the numbers. Returns the
// exit code.
int eval_pairs(const Arguments& arguments);

}  // namespace braid::apps
