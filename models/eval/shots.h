// Examples in front of an item (few-shot).
#pragma once
#include <span>
#include <vector>

#include "braid/models/eval/documents.h"

namespace braid::models::eval {

// The places in `pool` of `count` examples for item number `item`, drawn without repetition by the seed: the same
// whatever the other items are. Never one that equals the item itself. Error(setting) when the pool has too few others.
std::vector<size_t> draw_shots(std::span<const Document> pool, const Document& document, int64_t item, int64_t count,
                               uint64_t seed);

// context + delimiter + right choice + separator, of each example.
std::string shots_text(const TaskTemplate& form, std::span<const Document> pool, std::span<const size_t> shots);

}  // namespace braid::models::eval
