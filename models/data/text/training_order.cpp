#include "braid/models/data/text/training_order.h"

#include <algorithm>

#include "braid/tensor/error.h"

namespace braid::models::text {

TrainingOrder::TrainingOrder(Dataset data, uint64_t seed)
    : data_(std::move(data)), sampler_(data_.size(), seed), seed_(seed) {}

void TrainingOrder::continue_after(const std::vector<EarlierLength>& earlier) {
  rest_.reset();
  epoch_ = before_ = before_tokens_ = 0;
  int64_t read = 0;  // sequences of `now`, which is of `epoch_`
  Dataset now = data_.rest({}, earlier.empty() ? data_.seq_len() : earlier[0].seq_len);
  bool whole = true;  // `now` is all of the data
  const auto set_length = [&](int64_t seq_len) {
    if (seq_len == now.seq_len()) return;
    std::vector<int64_t> done;
    for (int64_t position = 0; position < read; ++position)
      done.push_back(Sampler(now.size(), seed_).index(epoch_, position));
    now = now.rest(done, seq_len);
    whole = whole && read == 0;
    read = 0;
  };
  for (const auto& [seq_len, sequences] : earlier) {
    set_length(seq_len);
    before_ += sequences, before_tokens_ += sequences * seq_len;
    for (int64_t left = sequences; left > 0;) {
      const int64_t taken = std::min(left, now.size() - read);
      read += taken, left -= taken;
      if (read < now.size()) break;
      now = data_.rest({}, seq_len);
      whole = true, read = 0, ++epoch_;
      const int64_t epochs = now.size() > 0 ? left / now.size() : 0;
      epoch_ += epochs, left -= epochs * now.size();
      if (now.size() == 0) fail(ErrorKind::setting, str("no sequence of ", seq_len, " tokens in the data"));
    }
  }
  set_length(data_.seq_len());
  whole_ = before_;
  if (whole && read == 0) return;
  whole_ += now.size();
  if (now.size() > 0) rest_.emplace(std::move(now));
  ++epoch_;
}

std::pair<const Dataset*, int64_t> TrainingOrder::at(int64_t count) const {
  check(count >= before_, "training_order",
        [&] { return str("sequence ", count, " was read before the length changed at ", before_); });
  if (rest_ && count < whole_) return {&*rest_, Sampler(rest_->size(), seed_).index(epoch_ - 1, count - before_)};
  const int64_t n = count - whole_;
  return {&data_, sampler_.index(epoch_ + n / sampler_.size(), n % sampler_.size())};
}

int64_t TrainingOrder::tokens(int64_t count) const { return before_tokens_ + (count - before_) * data_.seq_len(); }

double TrainingOrder::count_of_epochs(double epochs) const {
  return std::max(static_cast<double>(before_), static_cast<double>(whole_) + (epochs - static_cast<double>(epoch_)) *
                                                                                  static_cast<double>(data_.size()));
}

}  // namespace braid::models::text
