// The recall tasks, for models that are trained for minutes: lists of four words, and what is to be said after them.
// Every word is one token of a small vocabulary.
//
//   < fox tea oak harp. Kinds: animal drink tree instrument. owl plum saw coat. Kinds: bird fruit tool garment. ... >
//
// Families, one in a sample: again (the same words), back (from the last to the first), kinds (of each the kind),
// opposites ("hot tall rich loud. Opposites: cold short poor quiet"), color ("red fox, blue tea, green oak, white harp.
// The green oak. The red fox. ...": the thing of a color, asked in any order). Twelve answers are graded. The four
// right ones of a list are different, so a guess among them is right once in four times.
//
// The lists are drawn anew for every sample, so that nothing a sample says helps with another one.
#pragma once
#include <cstdint>
#include <string>

#include "braid/models/data/tasks/tasks.h"

namespace braid::models::text {

inline constexpr int recall_task_count = 5;
inline constexpr double recall_chance = 0.25;  // of a guess among the answers of a list

std::string recall_task_name(int task);
// Held-out samples are new lists of the same words.
TaskSample make_recall_sample(Vocabulary vocabulary, uint64_t seed, int64_t index);

}  // namespace braid::models::text
