#include "braid/models/data/text/preference_data.h"

#include "braid/models/data/text/batches.h"
#include "braid/tensor/error.h"

namespace braid::models::text {

PreferenceData::PreferenceData(const std::string& folder, Split split, int64_t seq_len, bool cut_long_samples)
    : sequences_(folder, split, seq_len, {.packing = Packing::none, .cut_long_samples = cut_long_samples}) {
  check(holds_preferences(sequences_.manifest()), ErrorKind::input,
        [&] { return folder + " holds no preferences: expected a folder that braid prepare --preferences wrote"; });
  for (int64_t i = 0; i + 1 < sequences_.size(); ++i) {
    const int64_t number = sequences_.samples_of(i)[0];
    if (number % 2 == 0 && sequences_.samples_of(i + 1)[0] == number + 1) first_.push_back(i);
  }
  check(size() > 0, ErrorKind::input, [&] {
    return str("the ", name(split), " split of ", folder, " has no pair of at most ", seq_len + 1,
               " tokens a sequence: found ", documents() / 2, " pairs, the longest sequence of ",
               sequences_.sample_counts().longest,
               " tokens; prepare more pairs, use a longer sequence length, or cut "
               "long samples");
  });
}

Batch PreferenceData::batch(const std::vector<int64_t>& pairs) const {
  std::vector<int64_t> both;
  for (const int64_t pair : pairs) both.insert(both.end(), {first_sequence(pair), first_sequence(pair) + 1});
  return read_batch(sequences_, both);
}

}  // namespace braid::models::text
