// The shards of one split, written one after the other; parts of it can be moved to another split afterwards.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/models/data/prepare/output_folder.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/data/text/shard.h"
#include "braid/models/data/tokenizers/tokenizer.h"

namespace braid::models::text {

// Tokens begin ... end - 1 of a split.
struct TokenSpan {
  int64_t begin = 0, end = 0;
};

// How much of a split is on the disk.
struct SplitProgress {
  SplitInfo info;       // tokens and documents of all, the finished shards
  bool open = false;    // a shard is unfinished
  ShardProgress shard;  // it
};

class SplitWriter {
 public:
  // Files prefix-00000.tok, prefix-00001.tok, ... in `folder`, which must outlive this object.
  SplitWriter(const PreparedFolder& folder, std::string prefix, int64_t vocab_size, uint64_t fingerprint,
              int64_t shard_tokens);

  void write(std::span<const int32_t> tokens);
  void close();  // the present shard; later tokens begin a new one
  int64_t open_tokens() const { return shard_ ? shard_->tokens() : 0; }  // of the present shard

  SplitProgress sync();  // everything to the disk
  // Continues behind what another process wrote. Call it first. Error(input) when it is not there.
  void resume(const SplitProgress& from);

  // Where the tail of a span begins when it should have about `tokens` tokens, 1 <= tokens < end - begin: at the
  // beginning of a line where one is near, in the same shard. Call close() first.
  int64_t tail_begin(TokenSpan span, int64_t tokens, const Tokenizer& tokenizer) const;
  // Moves these spans, in order and apart from each other, to `other`, and ends what stays before each with `eos`: a
  // document is cut in two there. No span begins at token 0. The shards that change stay under set_aside() until they
  // are removed, so that another process can begin the move again.
  void move(const std::vector<TokenSpan>& spans, int32_t eos, SplitWriter& other);

  std::string next_name() const;  // of the shard at hand
  static std::string set_aside(const std::string& file) { return "moved-" + file; }

  SplitInfo info;  // what was written; complete after close()

 private:
  const PreparedFolder& folder_;
  std::string prefix_;
  int64_t vocab_size_;
  uint64_t fingerprint_;
  int64_t shard_tokens_;
  std::optional<ShardWriter> shard_;
};

}  // namespace braid::models::text
