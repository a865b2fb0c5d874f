#include "braid/models/data/prepare/count_words.h"

#include <memory>
#include <mutex>
#include <vector>

#include "braid/models/data/prepare/read_ahead.h"

namespace braid::models::text {
namespace {

// Fixed, so that words are dropped at the same places whatever the number of threads.
constexpr int64_t batch_bytes = 16 << 20;
constexpr int64_t batches_between_sums = 16;

// Counts of several threads: each takes one for a while.
class Counters {
 public:
  std::unique_ptr<WordCounts> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<WordCounts>();
    std::unique_ptr<WordCounts> counts = std::move(free_.back());
    free_.pop_back();
    return counts;
  }
  void give_back(std::unique_ptr<WordCounts> counts) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(counts));
  }
  void add_to(WordCounts& sum) {
    for (const auto& counts : free_) {
      sum.add(*counts);
      counts->clear();
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCounts>> free_;
};

}  // namespace

CountedCorpus count_words(TextSource& source, const BpeForm& form, size_t max_words,
                          const std::function<void(const Piece&)>& report) {
  CountedCorpus result;
  Counters counters;
  int64_t batches = 0;
  ReadAhead ahead(source, batch_bytes);
  ahead.run(
      [&](size_t) {
        if (++batches % batches_between_sums != 0) return;
        counters.add_to(result.counts);
        result.dropped += result.counts.keep_commonest(max_words);
      },
      [&](const Piece& piece, size_t) {
        std::string storage;
        std::unique_ptr<WordCounts> counts = counters.take();
        for (std::string_view rest = source.text_of(piece, storage); !rest.empty();) {
          const size_t n = part_of(rest, static_cast<size_t>(piece_bytes));
          form.count(rest.substr(0, n), *counts);
          rest.remove_prefix(n);
        }
        counters.give_back(std::move(counts));
      },
      [&](const Piece& piece, size_t) { report(piece); });
  counters.add_to(result.counts);
  result.dropped += result.counts.keep_commonest(max_words);
  return result;
}

}  // namespace braid::models::text
