// The words of a corpus, counted for training a tokenizer.
#pragma once
#include <cstdint>
#include <functional>

#include "braid/models/data/prepare/source.h"
#include "braid/models/data/tokenizers/training/form.h"

namespace braid::models::text {

struct CountedCorpus {
  WordCounts counts;
  int64_t dropped = 0;  // rare words that had no room
};

// Counts on all threads; the result is the same for any number of them. At most `max_words` different words are in
// memory, some 100 bytes each together with training: after every 256 MiB of text the rarest are dropped beyond that.
// Error(input) as for the source.
CountedCorpus count_words(TextSource& source, const BpeForm& form, size_t max_words,
                          const std::function<void(const Piece&)>& report);

}  // namespace braid::models::text
