#include "braid/models/data/text/dataset.h"

#include <algorithm>
#include <filesystem>

#include "braid/models/data/text/open_files.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text {

namespace {
constexpr size_t max_open_files = 64;  // of a split; many systems allow a process 256 or 1024
constexpr int32_t not_counted = -100;  // as a target
}  // namespace

const char* name(Split split) { return split == Split::train ? "train" : "val"; }

Dataset::Dataset(const std::string& folder, Split split, int64_t seq_len, const SequenceOptions& options)
    : folder_(folder),
      seq_len_(seq_len),
      options_(options),
      manifest_(read_manifest(folder)),
      fingerprint_(manifest_.fingerprint),
      tokenizer_(load_tokenizer(folder)),
      files_(std::make_shared<OpenFiles>(max_open_files)) {
  check(seq_len >= 1 && seq_len <= (int64_t{1} << 31), ErrorKind::setting,
        [&] { return str("the sequence length must be at least 1, found ", seq_len); });
  if (tokenizer_->fingerprint() != manifest_.tokenizer_fingerprint || tokenizer_->vocab_size() != manifest_.vocab_size)
    io::fail_input("the tokenizer is not the one the data was made with", folder, -1,
                   detail::hex(manifest_.tokenizer_fingerprint, 16), detail::hex(tokenizer_->fingerprint(), 16),
                   "make the data again with `braid prepare`");
  const SplitInfo& info = split == Split::train ? manifest_.train : manifest_.val;
  open_shards(info);
  if (has_samples()) {
    find_samples(info);
    pack_samples();
    fingerprint_ +=
        str(" packed ", packing_names[static_cast<int>(options_.packing)], options_.cut_long_samples ? " cut" : "");
    check(sequences_ > 0, ErrorKind::input, [&] {
      const bool cut = options_.cut_long_samples;
      return str("the ", name(split), " split of ", folder, " has no sample ",
                 cut ? "with an answer within " : "of at most ", seq_len + 1, " tokens: found ", counts_.samples,
                 " samples, the longest of ", counts_.longest, " tokens; prepare more samples, ",
                 cut ? "or use a longer sequence length" : "use a longer sequence length, or cut long samples");
    });
    return;
  }
  if (tokens() > 1) stretches_.push_back({0, 0, tokens() - 1});
  tile();
  check(sequences_ > 0, ErrorKind::input, [&] {
    return str("the ", name(split), " split of ", folder, " is too small: expected at least ", seq_len + 1,
               " tokens for one sequence, found ", tokens(), "; prepare more text or use a shorter sequence length");
  });
}

void Dataset::tile() {
  sequences_ = stretches_.empty() ? 0 : (stretches_.back().at + stretches_.back().size) / seq_len_;
}

Dataset Dataset::rest(const std::vector<int64_t>& read, int64_t seq_len) const {
  Dataset rest(*this);
  rest.seq_len_ = seq_len;
  if (has_samples()) {
    rest.read_samples_.resize(sample_starts_.size() - 1);
    for (const int64_t i : read)
      for (const int64_t number : samples_of(i)) rest.read_samples_[static_cast<size_t>(number)] = true;
    rest.counts_ = {};
    rest.pack_samples();
    return rest;
  }
  std::vector<int64_t> ordered = read;
  std::ranges::sort(ordered);
  rest.stretches_.clear();
  const auto keep = [&](int64_t begin, int64_t end) {  // of the joined stretches of this data set
    for (const Stretch& s : stretches(begin, end)) {
      Stretch* last = rest.stretches_.empty() ? nullptr : &rest.stretches_.back();
      if (last && last->first + last->size == s.first)
        last->size += s.size;
      else
        rest.stretches_.push_back({last ? last->at + last->size : 0, s.first, s.size});
    }
  };
  int64_t end = 0;  // of the sequences before
  for (const int64_t i : ordered) keep(end, i * seq_len_), end = (i + 1) * seq_len_;
  if (!stretches_.empty()) keep(end, stretches_.back().at + stretches_.back().size);
  rest.tile();
  return rest;
}

// The parts of stretches that make up [begin, end) of all of them joined.
std::vector<Dataset::Stretch> Dataset::stretches(int64_t begin, int64_t end) const {
  std::vector<Stretch> parts;
  auto s = std::ranges::upper_bound(stretches_, begin, {}, &Stretch::at);
  if (s != stretches_.begin()) --s;
  for (; begin < end && s != stretches_.end(); ++s) {
    const int64_t size = std::min(end, s->at + s->size) - begin;
    parts.push_back({begin, s->first + begin - s->at, size});
    begin += size;
  }
  return parts;
}

void Dataset::open_shards(const SplitInfo& split) {
  const auto open = [&](Shards& shards, const std::string& file, int64_t tokens, uint32_t checksum,
                        int64_t vocabulary) {
    const std::string path = (std::filesystem::path(folder_) / file).string();
    shards.push_back(std::make_shared<ShardReader>(path, files_));
    const ShardHeader& h = shards.back()->header();
    if (h.tokens != tokens || h.checksum != checksum || h.vocab_size != vocabulary ||
        h.tokenizer_fingerprint != manifest_.tokenizer_fingerprint)
      io::fail_input("the shard is not the one that dataset.json lists", path, -1,
                     str(tokens, " tokens with checksum ", detail::hex(checksum, 8)),
                     str(h.tokens, " with ", detail::hex(h.checksum, 8)), "make the data again with `braid prepare`");
  };
  starts_.push_back(0);
  for (const ShardInfo& s : split.shards) {
    open(shards_, s.file, s.tokens, s.checksum, manifest_.vocab_size);
    if (has_samples()) open(marks_, s.marks, s.tokens, s.marks_checksum, kMarkKinds);
    starts_.push_back(starts_.back() + s.tokens);
  }
}

void Dataset::find_samples(const SplitInfo& split) {
  constexpr int64_t at_once = 1 << 16;
  std::vector<int32_t> marks;
  for (int64_t first = 0; first < tokens(); first += at_once) {
    marks.resize(static_cast<size_t>(std::min(at_once, tokens() - first)));
    read_marks(first, marks);
    for (size_t i = 0; i < marks.size(); ++i) {
      const int64_t at = first + static_cast<int64_t>(i);
      if (marks[i] & kFirstMark) {
        sample_starts_.push_back(at), first_targets_.push_back(INT64_MAX);
      } else if ((marks[i] & kCountedMark) && !first_targets_.empty()) {
        first_targets_.back() = std::min(first_targets_.back(), at - sample_starts_.back());
      }
    }
  }
  const auto found = std::ssize(sample_starts_);
  if (found != split.documents || (found > 0 && sample_starts_[0] != 0))
    io::fail_input("the marks are not those of the samples", folder_, -1,
                   str(split.documents, " samples, the first at token 0"), std::to_string(found),
                   "make the data again with `braid prepare`");
  sample_starts_.push_back(tokens());
}

void Dataset::pack_samples() {
  std::vector<int64_t> lengths;  // inputs of each
  counts_.samples = std::ssize(sample_starts_) - 1;
  for (int64_t i = 0; i < counts_.samples; ++i) {
    const auto [begin, end] = sample(i);
    int64_t inputs = std::max<int64_t>(1, end - begin - 1);
    counts_.longest = std::max(counts_.longest, end - begin);
    counts_.too_long += inputs > seq_len_;
    if (options_.cut_long_samples) inputs = std::min(inputs, seq_len_);
    if (inputs <= seq_len_ && first_targets_[static_cast<size_t>(i)] > inputs) {
      ++counts_.without_target;
      inputs = seq_len_ + 1;  // fits nowhere
    }
    if (!read_samples_.empty() && read_samples_[static_cast<size_t>(i)]) inputs = seq_len_ + 1;
    if (inputs <= seq_len_) counts_.packed_tokens += inputs;
    lengths.push_back(inputs);
  }
  packed_ = pack(lengths, seq_len_, options_.packing);
  sequences_ = packed_.size();
  counts_.capacity = sequences_ * seq_len_;
}

std::pair<int64_t, int64_t> Dataset::sample(int64_t number) const {
  const auto i = static_cast<size_t>(number);
  return {sample_starts_.at(i), sample_starts_.at(i + 1)};
}

void Dataset::read(int64_t first, std::span<int32_t> into) const { read(shards_, first, into); }
void Dataset::read_marks(int64_t first, std::span<int32_t> into) const { read(marks_, first, into); }

void Dataset::read(const Shards& shards, int64_t first, std::span<int32_t> into) const {
  const auto n = static_cast<int64_t>(into.size());
  check(first >= 0 && first <= tokens() && n <= tokens() - first, "dataset",
        [&] { return str("tokens ", first, " to ", first + n, " are outside of the split of ", tokens()); });
  auto shard = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  while (!into.empty()) {
    const auto taken = std::min<int64_t>(static_cast<int64_t>(into.size()), starts_[shard + 1] - first);
    shards[shard]->read(first - starts_[shard], into.first(static_cast<size_t>(taken)));
    into = into.subspan(static_cast<size_t>(taken));
    first += taken;
    ++shard;
  }
}

void Dataset::window(int64_t i, std::span<int32_t> into) const {
  check(i >= 0 && i < sequences_ && static_cast<int64_t>(into.size()) == seq_len_ + 1 && stretches_.size() == 1,
        "dataset", [&] {
          return str("window ", i, " of ", into.size(), " tokens, but there are ", has_samples() ? 0 : sequences_,
                     " windows of ", seq_len_ + 1);
        });
  read(stretches_[0].first + i * seq_len_, into);
}

std::vector<int32_t> Dataset::window(int64_t i) const {
  std::vector<int32_t> tokens(static_cast<size_t>(seq_len_ + 1));
  window(i, tokens);
  return tokens;
}

Sequence Dataset::sequence(int64_t i) const {
  check(i >= 0 && i < sequences_, "dataset", [&] { return str("sequence ", i, ", but there are ", sequences_); });
  if (has_samples()) return packed_sequence(i);
  Sequence s;
  const int32_t eos = tokenizer_->eos_id();
  for (const Stretch& part : stretches(i * seq_len_, (i + 1) * seq_len_)) {
    std::vector<int32_t> tokens(static_cast<size_t>(part.size + 1));
    read(part.first, tokens);
    s.ids.insert(s.ids.end(), tokens.begin(), tokens.end() - 1);
    s.targets.insert(s.targets.end(), tokens.begin() + 1, tokens.end());
    for (size_t t = 0; separates_documents() && t + 1 < tokens.size(); ++t)
      s.positions.push_back(t == 0 || tokens[t - 1] == eos ? 0 : s.positions.back() + 1);
  }
  return s;
}

Sequence Dataset::packed_sequence(int64_t i) const {
  const auto T = static_cast<size_t>(seq_len_);
  Sequence s;
  std::vector<int32_t> tokens, marks;
  for (const int64_t number : samples_of(i)) {
    const auto [begin, end] = sample(number);
    const auto inputs = static_cast<size_t>(std::clamp<int64_t>(end - begin - 1, 1, seq_len_));
    const auto n = std::min(static_cast<size_t>(end - begin), inputs + 1);
    tokens.resize(n), marks.resize(n);
    read(begin, tokens), read_marks(begin, marks);
    for (size_t t = 0; t < inputs; ++t) {
      s.ids.push_back(tokens[t]);
      s.targets.push_back(t + 1 < n && marks[t + 1] & kCountedMark ? tokens[t + 1] : not_counted);
      s.positions.push_back(static_cast<int32_t>(t));
    }
  }
  const int32_t pad = tokenizer_->pad_id() >= 0 ? tokenizer_->pad_id() : tokenizer_->eos_id();
  for (int32_t position = 0; s.ids.size() < T; ++position) {
    s.ids.push_back(pad);
    s.targets.push_back(not_counted);
    s.positions.push_back(position);
  }
  if (!separates_documents()) s.positions.clear();
  return s;
}

}  // namespace braid::models::text
