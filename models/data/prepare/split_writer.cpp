#include "braid/models/data/prepare/split_writer.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "braid/tensor/io/file_system.h"

namespace braid::models::text {
namespace {

constexpr int64_t copy_tokens = 1 << 16;
constexpr int64_t reach_of_lines = 4096;  // tokens after a cut in which the end of a line is looked for

// Returns how many of the tokens are `eos`.
int64_t copy(const ShardReader& from, int64_t first, int64_t last, int32_t eos, SplitWriter& to) {
  int64_t ends = 0;
  std::vector<int32_t> tokens;
  for (; first < last; first += copy_tokens) {
    tokens.resize(static_cast<size_t>(std::min(copy_tokens, last - first)));
    from.read(first, tokens);
    to.write(tokens);
    ends += std::count(tokens.begin(), tokens.end(), eos);
  }
  return ends;
}

}  // namespace

SplitWriter::SplitWriter(const PreparedFolder& folder, std::string prefix, const std::unique_ptr<Tokenizer>& tokenizer,
                         int64_t shard_tokens)
    : folder_(folder), prefix_(std::move(prefix)), tokenizer_(tokenizer), shard_tokens_(shard_tokens) {}

std::string SplitWriter::name(const char* kind) const {
  char number[32];
  std::snprintf(number, sizeof number, "%s-%05zu.tok", kind, info.shards.size());
  return prefix_ + number;
}

void SplitWriter::begin_shard(bool marks) {
  if (shard_) return;
  shard_.emplace(folder_.file(name("")), tokenizer_->vocab_size(), tokenizer_->fingerprint());
  if (marks) marks_.emplace(folder_.file(name("-marks")), kMarkKinds, tokenizer_->fingerprint());
}

void SplitWriter::write(std::span<const int32_t> tokens) {
  const int64_t passed = std::clamp<int64_t>(there_ - info.tokens, 0, std::ssize(tokens));
  info.tokens += std::ssize(tokens);
  tokens = tokens.subspan(static_cast<size_t>(passed));
  while (!tokens.empty()) {
    if (shard_ && shard_->tokens() >= shard_tokens_) close();
    begin_shard(false);
    const auto room = static_cast<size_t>(shard_tokens_ - shard_->tokens());
    const auto part = tokens.first(std::min(tokens.size(), room));
    shard_->write(part);
    tokens = tokens.subspan(part.size());
  }
}

void SplitWriter::write(const Sample& sample) {
  if (shard_ && shard_->tokens() + std::ssize(sample.tokens) > shard_tokens_) close();
  begin_shard(true);
  std::vector<int32_t> marks;
  for (const bool counted : sample.counted) marks.push_back(counted ? kCountedMark : 0);
  for (const int64_t first : {int64_t{0}, sample.second}) marks.at(static_cast<size_t>(first)) |= kFirstMark;
  shard_->write(sample.tokens);
  marks_->write(marks);
  info.tokens += std::ssize(sample.tokens);
  info.documents += sample.second > 0 ? 2 : 1;
}

void SplitWriter::close() {
  if (!shard_) return;
  ShardInfo shard{.file = name("")};
  if (marks_) {
    shard.marks = name("-marks");
    shard.marks_checksum = marks_->commit().checksum;
  }
  const ShardHeader header = shard_->commit();
  shard.tokens = header.tokens, shard.checksum = header.checksum;
  shard_.reset(), marks_.reset();
  info.shards.push_back(std::move(shard));
  if (after_shard) after_shard();
}

void SplitWriter::append(const SplitInfo& parts) {
  std::vector<int32_t> tokens, marks;
  for (const ShardInfo& part : parts.shards) {
    const ShardReader from(folder_.file(part.file));
    if (part.marks.empty()) {
      info.documents += copy(from, 0, part.tokens, tokenizer_->eos_id(), *this);
      continue;
    }
    const ShardReader marks_from(folder_.file(part.marks));
    Sample sample;
    for (int64_t at = 0; at < part.tokens; at += std::ssize(tokens)) {
      tokens.resize(static_cast<size_t>(std::min(copy_tokens, part.tokens - at)));
      marks.resize(tokens.size());
      from.read(at, tokens);
      marks_from.read(at, marks);
      for (size_t i = 0; i < tokens.size(); ++i) {
        if ((marks[i] & kFirstMark) != 0 && !sample.tokens.empty()) write(std::exchange(sample, {}));
        sample.tokens.push_back(tokens[i]);
        sample.counted.push_back((marks[i] & kCountedMark) != 0);
      }
    }
    write(sample);
  }
}

void SplitWriter::adopt(const ShardInfo& shard) {
  const auto check_same = [&](const std::string& file, uint32_t checksum) {
    const ShardReader reader(folder_.file(file));
    check(reader.tokens() == shard.tokens && reader.header().checksum == checksum, ErrorKind::input,
          [&] { return "the token shard " + folder_.file(file) + " is not the one that was written"; });
  };
  check_same(shard.file, shard.checksum);
  if (!shard.marks.empty()) check_same(shard.marks, shard.marks_checksum);
  info.shards.push_back(shard);
  info.tokens += shard.tokens;
}

void SplitWriter::rewind(int64_t tokens) { there_ = std::exchange(info.tokens, tokens); }

std::vector<std::string> SplitWriter::files() const {
  std::vector<std::string> names;
  for (const ShardInfo& shard : info.shards)
    for (const std::string& file : {shard.file, shard.marks})
      if (!file.empty()) names.push_back(file);
  return names;
}

std::vector<int32_t> SplitWriter::in_one_shard(int64_t first, int64_t tokens) const {
  auto s = info.shards.begin();
  for (; first >= s->tokens; ++s) first -= s->tokens;
  std::vector<int32_t> read(static_cast<size_t>(std::min(tokens, s->tokens - first)));
  ShardReader(folder_.file(s->file)).read(first, read);
  return read;
}

int64_t SplitWriter::tail_begin(TokenSpan span, int64_t tokens) const {
  const int64_t cut = span.end - tokens;
  const std::vector<int32_t> near = in_one_shard(cut, std::min({reach_of_lines, tokens / 2, tokens - 2}));
  const auto ends_line = [&](int32_t token) { return tokenizer_->token_bytes(token).ends_with('\n'); };
  const auto found = std::find_if(near.begin(), near.end(), ends_line);
  const int64_t begin = found == near.end() ? cut : cut + (found - near.begin()) + 1;
  return in_one_shard(begin, 1).at(0) == tokenizer_->eos_id() ? begin + 1 : begin;
}

void SplitWriter::move(const std::vector<TokenSpan>& spans, SplitWriter& other) {
  close();
  const int32_t eos = tokenizer_->eos_id();
  const std::vector<ShardInfo> shards = std::move(info.shards);
  info.shards.clear();
  info.tokens = there_ = 0;
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
    io::rename_path(folder_.file(s.file), aside);
    const ShardReader reader(aside);
    while (at < end) {
      const bool inside = span != spans.end() && at >= span->begin;
      const int64_t stop = span == spans.end() ? end : std::min(end, inside ? span->end : span->begin);
      const int64_t ends = copy(reader, at - start, stop - start, eos, inside ? other : *this);
      if (inside) other.info.documents += ends, info.documents -= ends;
      at = stop;
      if (inside && at == span->end) ++span;
      if (inside || span == spans.end() || at < span->begin) continue;
      int32_t before = 0;
      reader.read(at - 1 - start, {&before, 1});
      if (before == eos) continue;  // the cut lies between two documents
      shard_->write({&eos, 1});     // in the shard of the token before it, even if that is full
      ++info.tokens, ++info.documents;
    }
  }
}

}  // namespace braid::models::text
