#include "braid/models/data/text/shard.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "braid/models/data/text/open_files.h"
#include "braid/tensor/base/integers.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"

namespace braid::models::text {
namespace {

constexpr char magic[8] = {'B', 'R', 'A', 'I', 'D', 'T', 'O', 'K'};
constexpr uint32_t kShardVersion = 1;
constexpr const char* remake = "make it again with `braid prepare`";

struct DiskHeader {
  char magic[8];
  uint32_t version;
  uint32_t token_bytes;
  uint64_t tokens;
  uint64_t vocab_size;
  uint64_t tokenizer_fingerprint;
  uint64_t block_bytes;
  uint64_t blocks;
  uint32_t table_crc;   // of the table at the end of the file
  uint32_t header_crc;  // of the 60 bytes before
};
static_assert(sizeof(DiskHeader) == 64 && offsetof(DiskHeader, header_crc) == 60);

uint32_t crc_of(const std::vector<uint32_t>& table) {
  return io::crc32c(table.data(), static_cast<int64_t>(table.size() * sizeof(uint32_t)));
}

int token_bytes_for(int64_t vocab_size) { return vocab_size <= 65536 ? 2 : 4; }

}  // namespace

ShardWriter::ShardWriter(const std::string& path, int64_t vocab_size, uint64_t tokenizer_fingerprint) : file_(path) {
  check(vocab_size > 0 && vocab_size <= INT32_MAX, "shard",
        [&] { return str("vocabulary size out of range: ", vocab_size); });
  header_ = {.vocab_size = vocab_size,
             .tokenizer_fingerprint = tokenizer_fingerprint,
             .token_bytes = token_bytes_for(vocab_size)};
  const DiskHeader unwritten{};  // its place; commit() writes the header
  file_.write(&unwritten, sizeof unwritten);
}

void ShardWriter::write(std::span<const int32_t> tokens) {
  constexpr int64_t converted_at_once = 1 << 14;
  char bytes[converted_at_once * 4];
  header_.tokens += static_cast<int64_t>(tokens.size());
  while (!tokens.empty()) {
    const int64_t width = header_.token_bytes;
    const int64_t n = std::min({std::ssize(tokens), (shard_block_bytes - block_bytes_) / width, converted_at_once});
    const auto part = tokens.first(static_cast<size_t>(n));
    uint32_t largest = 0;
    for (const int32_t token : part) largest = std::max(largest, static_cast<uint32_t>(token));
    check(largest < header_.vocab_size, "shard", [&] {
      return str("token id ", static_cast<int32_t>(largest), " is outside the vocabulary of ", header_.vocab_size);
    });
    if (width == 4) {
      std::memcpy(bytes, part.data(), part.size_bytes());  // little-endian
    } else {
      for (size_t i = 0; i < part.size(); ++i) {
        const auto narrow = static_cast<uint16_t>(part[i]);
        std::memcpy(bytes + i * 2, &narrow, 2);
      }
    }
    block_crc_ = io::crc32c(bytes, n * width, block_crc_);
    file_.write(bytes, n * width);
    block_bytes_ += n * width;
    if (block_bytes_ == shard_block_bytes) {
      table_.push_back(block_crc_);
      block_bytes_ = 0, block_crc_ = 0;
    }
    tokens = tokens.subspan(part.size());
  }
}

ShardHeader ShardWriter::commit() {
  if (block_bytes_ > 0) table_.push_back(block_crc_);
  file_.write(table_.data(), static_cast<int64_t>(table_.size() * sizeof(uint32_t)));
  header_.checksum = crc_of(table_);
  DiskHeader disk{};
  std::memcpy(disk.magic, magic, sizeof magic);
  disk.version = kShardVersion;
  disk.token_bytes = static_cast<uint32_t>(header_.token_bytes);
  disk.tokens = static_cast<uint64_t>(header_.tokens);
  disk.vocab_size = static_cast<uint64_t>(header_.vocab_size);
  disk.tokenizer_fingerprint = header_.tokenizer_fingerprint;
  disk.block_bytes = static_cast<uint64_t>(shard_block_bytes);
  disk.blocks = table_.size();
  disk.table_crc = header_.checksum;
  disk.header_crc = io::crc32c(&disk, offsetof(DiskHeader, header_crc));
  file_.write_at(0, &disk, sizeof disk);
  file_.commit();
  return header_;
}

ShardReader::ShardReader(const std::string& path) : path_(path), file_(std::make_shared<const io::Reader>(path)) {
  open();
}
ShardReader::ShardReader(const std::string& path, std::shared_ptr<OpenFiles> files)
    : path_(path), files_(std::move(files)) {
  open();
}
ShardReader::ShardReader(std::span<const std::byte> memory, const std::string& name)
    : path_(name), file_(std::make_shared<const io::Reader>(memory, name)) {
  open();
}

// A file that was closed in between may be another one when it is opened again: braid prepare replaces whole folders.
std::shared_ptr<const io::Reader> ShardReader::file() const {
  if (!files_) return file_;
  std::shared_ptr<const io::Reader> file = files_->get(path_);
  uint32_t crc = 0;
  const auto at = static_cast<int64_t>(offsetof(DiskHeader, header_crc));
  if (file->size() > at) file->read_at(at, &crc, sizeof crc);
  if (crc != header_crc_)
    file->fail("the token shard was replaced while it was in use", at, str("the checksum ", header_crc_),
               std::to_string(crc), "restore the data, then run the same command again");
  return file;
}

void ShardReader::open() {
  const std::shared_ptr<const io::Reader> opened = files_ ? files_->get(path_) : file_;
  const io::Reader& file = *opened;
  const auto require = [&](bool ok, int64_t byte, const char* what, const std::string& expected, const auto& found) {
    if (!ok) file.fail(str("damaged token shard: ", what), byte, expected, std::to_string(found), remake);
  };
  if (file.size() < static_cast<int64_t>(sizeof(DiskHeader)))
    file.fail("not a token shard", 0, "a header of 64 bytes", str("a file of ", file.size(), " bytes"), remake);
  DiskHeader disk;
  file.read_at(0, &disk, sizeof disk);
  if (std::memcmp(disk.magic, magic, sizeof magic) != 0)
    file.fail("not a token shard", 0, "the letters BRAIDTOK", "other bytes", "check that it is the right file");
  const uint32_t crc = io::crc32c(&disk, offsetof(DiskHeader, header_crc));
  require(disk.header_crc == crc, 60, "the header's checksum", std::to_string(crc), disk.header_crc);
  if (disk.version != kShardVersion)
    file.fail("unsupported token shard", 8, "version 1", std::to_string(disk.version), remake);
  require(disk.vocab_size > 0 && disk.vocab_size <= INT32_MAX, 24, "vocabulary size", "1 to 2147483647",
          disk.vocab_size);
  const int expected_bytes = token_bytes_for(static_cast<int64_t>(disk.vocab_size));
  require(disk.token_bytes == static_cast<uint32_t>(expected_bytes), 12, "bytes per token",
          std::to_string(expected_bytes), disk.token_bytes);
  require(disk.block_bytes == static_cast<uint64_t>(shard_block_bytes), 40, "block size", "1048576", disk.block_bytes);
  // Bounded by the file's size before any arithmetic: no product can overflow.
  const auto size = static_cast<uint64_t>(file.size());
  require(disk.tokens <= size, 16, "number of tokens", "at most what the file can hold", disk.tokens);
  const uint64_t data = disk.tokens * disk.token_bytes;
  const uint64_t blocks = detail::ceil_div(data, disk.block_bytes);
  require(disk.blocks == blocks, 48, "number of blocks", std::to_string(blocks), disk.blocks);
  const uint64_t whole = sizeof(DiskHeader) + data + blocks * sizeof(uint32_t);
  require(size == whole, -1, "the file's size", str(whole, " bytes"), size);
  header_ = {static_cast<int64_t>(disk.tokens), static_cast<int64_t>(disk.vocab_size), disk.tokenizer_fingerprint,
             expected_bytes, disk.table_crc};

  table_.resize(blocks);
  const auto table_at = static_cast<int64_t>(sizeof(DiskHeader) + data);
  file.read_at(table_at, table_.data(), static_cast<int64_t>(blocks * sizeof(uint32_t)));
  require(crc_of(table_) == disk.table_crc, table_at, "the checksum of the checksum table",
          std::to_string(disk.table_crc), crc_of(table_));
  header_crc_ = disk.header_crc;
  verified_ = std::make_unique<std::atomic<bool>[]>(blocks);
}

void ShardReader::verify_block(const io::Reader& file, int64_t block) const {
  const int64_t at = static_cast<int64_t>(sizeof(DiskHeader)) + block * shard_block_bytes;
  const int64_t data_end = static_cast<int64_t>(sizeof(DiskHeader)) + header_.tokens * header_.token_bytes;
  std::vector<char> bytes(static_cast<size_t>(std::min(shard_block_bytes, data_end - at)));
  file.read_at(at, bytes.data(), static_cast<int64_t>(bytes.size()));
  const uint32_t crc = io::crc32c(bytes.data(), static_cast<int64_t>(bytes.size()));
  const uint32_t expected = table_[static_cast<size_t>(block)];
  if (crc != expected)
    file.fail(str("damaged token shard: block ", block), at, str("checksum ", expected), std::to_string(crc), remake);
  verified_[static_cast<size_t>(block)].store(true, std::memory_order_release);
}

void ShardReader::read(int64_t first, std::span<int32_t> into) const {
  const auto n = static_cast<int64_t>(into.size());
  check(first >= 0 && first <= header_.tokens && n <= header_.tokens - first, "shard", [&] {
    return str("tokens ", first, " to ", first + n, " are outside of ", path_, ", which has ", header_.tokens);
  });
  if (n == 0) return;
  const std::shared_ptr<const io::Reader> opened = this->file();
  const io::Reader& file = *opened;
  const int64_t width = header_.token_bytes;
  for (int64_t b = first * width / shard_block_bytes; b <= (first + n - 1) * width / shard_block_bytes; ++b)
    if (!verified_[static_cast<size_t>(b)].load(std::memory_order_acquire)) verify_block(file, b);

  const int64_t at = static_cast<int64_t>(sizeof(DiskHeader)) + first * width;
  if (width == 4) {
    file.read_at(at, into.data(), n * 4);
  } else {  // read into the upper half, widen from the front: the write position never passes the read position
    auto* narrow = reinterpret_cast<char*>(into.data()) + n * 2;
    file.read_at(at, narrow, n * 2);
    for (int64_t i = 0; i < n; ++i) {
      uint16_t token;
      std::memcpy(&token, narrow + i * 2, 2);
      into[static_cast<size_t>(i)] = token;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const int32_t token = into[static_cast<size_t>(i)];
    if (token < 0 || token >= header_.vocab_size)
      file.fail("bad token in shard", at + i * width, str("an id below ", header_.vocab_size),
                std::to_string(static_cast<uint32_t>(token)), remake);
  }
}

void ShardReader::verify() const {
  std::vector<int32_t> tokens(static_cast<size_t>(shard_block_bytes));
  for (int64_t first = 0; first < header_.tokens; first += shard_block_bytes)
    read(first, std::span(tokens).first(static_cast<size_t>(std::min(shard_block_bytes, header_.tokens - first))));
}

}  // namespace braid::models::text
