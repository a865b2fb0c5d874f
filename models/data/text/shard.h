// A token shard: one `*.tok` file of token ids with checksums, read at any offset without loading all of it.
// The byte layout is in data_folder.md.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::text {

class OpenFiles;

inline constexpr int64_t shard_block_bytes = 1 << 20;

// The header of a shard.
struct ShardHeader {
  int64_t tokens = 0;
  int64_t vocab_size = 0;
  uint64_t tokenizer_fingerprint = 0;
  int token_bytes = 0;    // 2 for vocabularies up to 65536, else 4
  uint32_t checksum = 0;  // of the table of block checksums: covers the entire content
};

class ShardWriter {
 public:
  ShardWriter(const std::string& path, int64_t vocab_size, uint64_t tokenizer_fingerprint);
  void write(std::span<const int32_t> tokens);  // Error(misuse) for an id outside the vocabulary
  int64_t tokens() const { return header_.tokens; }
  ShardHeader commit();  // the file appears now, complete

 private:
  ShardHeader header_;
  io::AtomicFile file_;
  int64_t block_bytes_ = 0;  // of the present block
  uint32_t block_crc_ = 0;
  std::vector<uint32_t> table_;  // of the blocks before it
};

class ShardReader {
 public:
  // Checks header, size and checksum table. Error(input) naming file and byte.
  explicit ShardReader(const std::string& path);
  // The same, with a file that `files` opens when it is read.
  ShardReader(const std::string& path, std::shared_ptr<OpenFiles> files);
  // The same on bytes in memory, which must outlive the reader.
  ShardReader(std::span<const std::byte> memory, const std::string& name);
  const ShardHeader& header() const { return header_; }
  int64_t tokens() const { return header_.tokens; }
  // Tokens [first, first + into.size()). Each block's checksum is compared when the block is first read: Error(input)
  // naming file, block and byte. Safe to call from several threads at once.
  void read(int64_t first, std::span<int32_t> into) const;
  void verify() const;  // every block

 private:
  void open();
  std::shared_ptr<const io::Reader> file() const;  // Error(input) when it is not the file that was opened first
  void verify_block(const io::Reader& file, int64_t block) const;

  std::string path_;
  std::shared_ptr<OpenFiles> files_;  // null: file_ is open
  std::shared_ptr<const io::Reader> file_;
  uint32_t header_crc_ = 0;
  ShardHeader header_;
  std::vector<uint32_t> table_;
  std::unique_ptr<std::atomic<bool>[]> verified_;  // one per block
};

}  // namespace braid::models::text
