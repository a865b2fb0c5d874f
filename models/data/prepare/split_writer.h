// The shards of one split, written one after the other; parts of it can be moved to another split afterwards.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/models/data/prepare/chat.h"
#include "braid/models/data/prepare/output_folder.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/data/text/shard.h"
#include "braid/models/data/tokenizers/tokenizer.h"

namespace braid::models::text {

// Tokens begin ... end - 1 of a split.
struct TokenSpan {
  int64_t begin = 0, end = 0;
};

class SplitWriter {
 public:
  // Files prefix-00000.tok, prefix-00001.tok, ... in `folder`. The tokenizer is there at the first write(); it and the
  // folder must outlive this object.
  SplitWriter(const PreparedFolder& folder, std::string prefix, const std::unique_ptr<Tokenizer>& tokenizer,
              int64_t shard_tokens);

  void write(std::span<const int32_t> tokens);
  // A sample lies in one shard, of preferences both of its sequences as a document each, and has marks beside its
  // tokens, in prefix-marks-00000.tok, ...
  void write(const Sample& sample);
  void close();  // the present shard; later tokens begin a new one
  // Writes what the shards of `parts` hold, and counts its documents.
  void append(const SplitInfo& parts);

  // Takes a finished shard of an earlier call as its next one. Error(input) when it is not there.
  void adopt(const ShardInfo& shard);
  // The next tokens to come are again those from token `tokens` on: what the shards have of them is passed over.
  void rewind(int64_t tokens);

  // Where the tail of a span begins when it should have about `tokens` tokens, 2 <= tokens < end - begin: at the
  // beginning of a line where one is near, in the same shard, and never with the end of a document. Call close() first.
  int64_t tail_begin(TokenSpan span, int64_t tokens) const;
  // Moves these spans, in order and apart from each other, and the count of their documents to `other`. What stays
  // before each ends with the token that ends a document: where there is none, a document is cut in two. No span begins
  // at token 0. The shards that change stay under set_aside() until they are removed, so that another process can begin
  // the move again.
  void move(const std::vector<TokenSpan>& spans, SplitWriter& other);

  static std::string set_aside(const std::string& file) { return "moved-" + file; }
  std::vector<std::string> files() const;  // names of the finished shards
  const std::string& prefix() const { return prefix_; }

  SplitInfo info;                          // what was written; complete after close()
  std::function<void()> after_shard = {};  // called when a shard was finished

 private:
  void begin_shard(bool marks);
  std::string name(const char* kind) const;  // of the shard at hand
  // Tokens from `first` on, at most so many, and only those in the finished shard of the first one.
  std::vector<int32_t> in_one_shard(int64_t first, int64_t tokens) const;

  const PreparedFolder& folder_;
  std::string prefix_;
  const std::unique_ptr<Tokenizer>& tokenizer_;
  int64_t shard_tokens_;
  int64_t there_ = 0;  // tokens of the adopted shards
  std::optional<ShardWriter> shard_, marks_;
};

}  // namespace braid::models::text
