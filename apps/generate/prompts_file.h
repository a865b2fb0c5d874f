// Many prompts from a file, continued in batches; each reply is a line of JSON.
#pragma once
#include <string>
#include <vector>

#include "apps/generate/reply.h"

namespace braid::apps {

// One prompt a line, without empty lines; of a file of JSON objects the field "prompt" of each. What a file is, its
// bytes say (models/data/prepare/file_kind.h). Error(input) naming file and line when there is none.
std::vector<std::string> read_prompts(const std::string& file);

// {"prompt": ..., "text": ..., "tokens": N, "reason": "length" | "end_of_text" | "context_full" | "stop"} for each
// prompt, in their order, written by rank 0 to the file `out`, complete or not at all, or to standard output where it
// is empty. `rows` prompts at a time; the seed of prompt i is that of the settings + i. Error(setting) names the prompt
// that is too long.
ReplySpeed write_replies(const ReplySettings& settings, const std::vector<std::string>& prompts, int64_t rows,
                         const std::string& out, bool root);

}  // namespace braid::apps
