#include "braid/models/text/dataset.h"

#include <algorithm>
#include <filesystem>

#include "braid/models/text/open_files.h"
#include "braid/tensor/detail/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text {

namespace {
constexpr size_t most_open_files = 64;  // of a split; many systems allow a process 256 or 1024
}

const char* name(Split split) { return split == Split::train ? "train" : "val"; }

Dataset::Dataset(const std::string& folder, Split split, int64_t seq_len, DocumentAttention documents)
    : folder_(folder),
      split_(split),
      seq_len_(seq_len),
      documents_(documents),
      manifest_(read_manifest(folder)),
      tokenizer_(load_tokenizer(folder)),
      files_(std::make_shared<OpenFiles>(most_open_files)) {
  check(seq_len >= 1 && seq_len <= (int64_t{1} << 31), ErrorKind::setting,
        [&] { return "the sequence length must be at least 1, found " + std::to_string(seq_len); });
  if (tokenizer_->fingerprint() != manifest_.tokenizer_fingerprint || tokenizer_->vocab_size() != manifest_.vocab_size)
    io::fail_input("the tokenizer is not the one the data was made with", folder, -1,
                   detail::hex(manifest_.tokenizer_fingerprint, 16), detail::hex(tokenizer_->fingerprint(), 16),
                   "make the data again with `braid prepare`");
  const SplitInfo& info = split == Split::train ? manifest_.train : manifest_.val;
  starts_.push_back(0);
  for (const ShardInfo& s : info.shards) {
    const std::string path = (std::filesystem::path(folder) / s.file).string();
    shards_.emplace_back(path, files_);
    const ShardHeader& h = shards_.back().header();
    if (h.tokens != s.tokens || h.checksum != s.checksum || h.vocab_size != manifest_.vocab_size ||
        h.tokenizer_fingerprint != manifest_.tokenizer_fingerprint)
      io::fail_input("the shard is not the one that dataset.json lists", path, -1,
                     std::to_string(s.tokens) + " tokens with checksum " + detail::hex(s.checksum, 8),
                     std::to_string(h.tokens) + " with " + detail::hex(h.checksum, 8),
                     "make the data again with `braid prepare`");
    starts_.push_back(starts_.back() + h.tokens);
  }
  windows_ = tokens() > 0 ? (tokens() - 1) / seq_len : 0;
  check(windows_ > 0, ErrorKind::input, [&] {
    return "the " + std::string(name(split)) + " split of " + folder + " is too small: expected at least " +
           std::to_string(seq_len + 1) + " tokens for one sequence, found " + std::to_string(tokens()) +
           "; prepare more text or use a shorter sequence length";
  });
}

void Dataset::read(int64_t first, std::span<int32_t> into) const {
  const auto n = static_cast<int64_t>(into.size());
  check(first >= 0 && first <= tokens() && n <= tokens() - first, "dataset", [&] {
    return "tokens " + std::to_string(first) + " to " + std::to_string(first + n) + " are outside of the split of " +
           std::to_string(tokens());
  });
  auto shard = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  while (!into.empty()) {
    const auto taken = std::min<int64_t>(static_cast<int64_t>(into.size()), starts_[shard + 1] - first);
    shards_[shard].read(first - starts_[shard], into.first(static_cast<size_t>(taken)));
    into = into.subspan(static_cast<size_t>(taken));
    first += taken;
    ++shard;
  }
}

void Dataset::window(int64_t i, std::span<int32_t> into) const {
  check(i >= 0 && i < windows_ && static_cast<int64_t>(into.size()) == seq_len_ + 1, "dataset", [&] {
    return "window " + std::to_string(i) + " of " + std::to_string(into.size()) + " tokens, but there are " +
           std::to_string(windows_) + " windows of " + std::to_string(seq_len_ + 1);
  });
  read(i * seq_len_, into);
}

std::vector<int32_t> Dataset::window(int64_t i) const {
  std::vector<int32_t> tokens(static_cast<size_t>(seq_len_ + 1));
  window(i, tokens);
  return tokens;
}

Sequence Dataset::sequence(int64_t i) const {
  const std::vector<int32_t> tokens = window(i);
  Sequence s{{tokens.begin(), tokens.end() - 1}, {tokens.begin() + 1, tokens.end()}, {}};
  if (!separates_documents()) return s;
  const int32_t eos = tokenizer_->eos_id();
  for (size_t t = 0; t < s.ids.size(); ++t)
    s.positions.push_back(t == 0 || s.ids[t - 1] == eos ? 0 : s.positions[t - 1] + 1);
  return s;
}

}  // namespace braid::models::text
