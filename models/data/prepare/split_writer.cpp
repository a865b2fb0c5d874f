#include "braid/models/data/prepare/split_writer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

constexpr int64_t copy_tokens = 1 << 16;
constexpr int64_t reach_of_lines = 4096;  // tokens after a cut in which the end of a line is looked for

void copy(const ShardReader& from, int64_t first, int64_t last, SplitWriter& to) {
  std::vector<int32_t> tokens;
  for (; first < last; first += copy_tokens) {
    tokens.resize(static_cast<size_t>(std::min(copy_tokens, last - first)));
    from.read(first, tokens);
    to.write(tokens);
  }
}

}  // namespace

SplitWriter::SplitWriter(const PreparedFolder& folder, std::string prefix, int64_t vocab_size, uint64_t fingerprint,
                         int64_t shard_tokens)
    : folder_(folder),
      prefix_(std::move(prefix)),
      vocab_size_(vocab_size),
      fingerprint_(fingerprint),
      shard_tokens_(shard_tokens) {}

std::string SplitWriter::next_name() const {
  char name[64];
  std::snprintf(name, sizeof name, "%s-%05zu.tok", prefix_.c_str(), info.shards.size());
  return name;
}

void SplitWriter::write(std::span<const int32_t> tokens) {
  info.tokens += static_cast<int64_t>(tokens.size());
  while (!tokens.empty()) {
    if (shard_ && shard_->tokens() >= shard_tokens_) close();
    if (!shard_) shard_.emplace(folder_.file(next_name()), vocab_size_, fingerprint_, ShardProgress{});
    const auto room = static_cast<size_t>(shard_tokens_ - shard_->tokens());
    const auto part = tokens.first(std::min(tokens.size(), room));
    shard_->write(part);
    tokens = tokens.subspan(part.size());
  }
}

void SplitWriter::close() {
  if (!shard_) return;
  const ShardHeader header = shard_->commit();
  shard_.reset();
  info.shards.push_back({next_name(), header.tokens, header.checksum});
}

SplitProgress SplitWriter::sync() {
  SplitProgress progress{info, shard_.has_value(), {}};
  if (shard_) progress.shard = shard_->sync();
  return progress;
}

void SplitWriter::resume(const SplitProgress& from) {
  for (const ShardInfo& s : from.info.shards) {
    const ShardReader reader(folder_.file(s.file));
    check(reader.tokens() == s.tokens && reader.header().checksum == s.checksum, ErrorKind::input,
          [&] { return "the token shard " + folder_.file(s.file) + " is not the one that was written"; });
  }
  info = from.info;
  // It may have been finished since, and be continued differently now.
  const std::string last = folder_.file(next_name()), unfinished = io::AtomicFile::unfinished(last);
  if (from.open && !std::filesystem::exists(unfinished)) std::filesystem::rename(last, unfinished);
  if (from.open) shard_.emplace(folder_.file(next_name()), vocab_size_, fingerprint_, from.shard);
}

int64_t SplitWriter::tail_begin(TokenSpan span, int64_t tokens, const Tokenizer& tokenizer) const {
  const int64_t cut = span.end - tokens;
  const int64_t reach = std::min(reach_of_lines, tokens / 2);
  int64_t start = 0;
  for (const ShardInfo& s : info.shards) {
    if (cut < start + s.tokens) {
      std::vector<int32_t> near(static_cast<size_t>(std::min(reach, start + s.tokens - cut)));
      ShardReader(folder_.file(s.file)).read(cut - start, near);
      const auto ends_line = [&](int32_t token) { return tokenizer.token_bytes(token).ends_with('\n'); };
      const auto found = std::find_if(near.begin(), near.end(), ends_line);
      return found == near.end() ? cut : cut + (found - near.begin()) + 1;
    }
    start += s.tokens;
  }
  return cut;
}

void SplitWriter::move(const std::vector<TokenSpan>& spans, int32_t eos, SplitWriter& other) {
  close();
  const std::vector<ShardInfo> shards = std::move(info.shards);
  info.shards.clear();
  info.tokens = 0;
  auto span = spans.begin();
  int64_t at = 0;
  for (const ShardInfo& s : shards) {
    const int64_t start = at, end = at + s.tokens;
    if (spans.empty() || end < spans.front().begin) {  // the shard stays as it is
      info.shards.push_back(s);
      info.tokens += s.tokens;
      at = end;
      continue;
    }
    const std::string aside = folder_.file(set_aside(s.file));
    std::filesystem::rename(folder_.file(s.file), aside);
    const ShardReader reader(aside);
    while (at < end) {
      const bool inside = span != spans.end() && at >= span->begin;
      const int64_t stop = span == spans.end() ? end : std::min(end, inside ? span->end : span->begin);
      copy(reader, at - start, stop - start, inside ? other : *this);
      at = stop;
      if (inside && at == span->end) ++span;
      if (!inside && span != spans.end() && at == span->begin) {
        shard_->write({&eos, 1});  // in the shard of the token before it, even if that is full
        ++info.tokens;
      }
    }
  }
}

}  // namespace braid::models::text
