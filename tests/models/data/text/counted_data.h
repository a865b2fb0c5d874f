// A data folder of consecutive tokens, so that a target tells where it was read.
#pragma once
#include <vector>

#include "braid/models/data/text/manifest.h"
#include "braid/models/data/text/shard.h"
#include "braid/models/data/tokenizers/byte_tokenizer.h"
#include "tests/support/temp_folder.h"

namespace braid::test {

// The tokens first, first + 1 ... last - 1, below the vocabulary of bytes.
inline void make_counted(const TempFolder& folder, int32_t first, int32_t last) {
  using namespace models::text;
  const ByteTokenizer tokenizer;
  ShardWriter writer(folder / "train.tok", tokenizer.vocab_size(), tokenizer.fingerprint());
  std::vector<int32_t> tokens;
  for (int32_t i = first; i < last; ++i) tokens.push_back(i);
  writer.write(tokens);
  const ShardHeader header = writer.commit();
  Manifest m;
  m.tokenizer = tokenizer.name();
  m.tokenizer_fingerprint = tokenizer.fingerprint();
  m.vocab_size = tokenizer.vocab_size();
  m.train = {.tokens = header.tokens, .documents = 1, .shards = {{"train.tok", header.tokens, header.checksum}}};
  save_tokenizer(tokenizer, folder.path.string());
  write_manifest(folder.path.string(), m);
}

}  // namespace braid::test
