#include "braid/models/data/prepare/document_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::text {

void DocumentHasher::round() {
  auto& [a, b, c, d] = v_;
  a += b, b = std::rotl(b, 13), b ^= a, a = std::rotl(a, 32);
  c += d, d = std::rotl(d, 16), d ^= c;
  a += d, d = std::rotl(d, 21), d ^= a;
  c += b, b = std::rotl(b, 17), b ^= c, c = std::rotl(c, 32);
}

void DocumentHasher::absorb(uint64_t word) {
  v_[3] ^= word;
  round();
  round();
  v_[0] ^= word;
}

void DocumentHasher::add(std::string_view bytes) {
  uint64_t word = 0;
  if (const size_t held = length_ % 8; held > 0) {
    const size_t n = std::min(8 - held, bytes.size());
    std::memcpy(rest_.data() + held, bytes.data(), n);
    length_ += n;
    bytes.remove_prefix(n);
    if (length_ % 8 > 0) return;
    std::memcpy(&word, rest_.data(), 8);
    absorb(word);
  }
  length_ += bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::memcpy(&word, bytes.data(), 8);
    absorb(word);
  }
  if (!bytes.empty()) std::memcpy(rest_.data(), bytes.data(), bytes.size());
}

Hash128 DocumentHasher::finish() {
  uint64_t word = 0;
  std::memcpy(&word, rest_.data(), length_ % 8);
  absorb(word | length_ << 56);
  const auto four_rounds = [&] {
    for (int i = 0; i < 4; ++i) round();
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  };
  v_[2] ^= 0xee;
  const uint64_t low = four_rounds();
  v_[1] ^= 0xdd;
  return {low, four_rounds()};
}

SeenDocuments::SeenDocuments(const std::string& path, int64_t known) {
  if (known > 0) {
    io::Reader reader(path);
    std::vector<Hash128> some(4096);
    for (int64_t left = known; left > 0; left -= std::ssize(some)) {
      some.resize(static_cast<size_t>(std::min<int64_t>(left, 4096)));
      reader.read(some.data(), std::ssize(some) * static_cast<int64_t>(sizeof(Hash128)));
      for (const Hash128 hash : some) place(hash);
    }
  }
  count_ = known;
  file_ = std::make_unique<io::AppendFile>(path, known * static_cast<int64_t>(sizeof(Hash128)));
}

// A slot of zeros is free; the hash of zeros itself counts as seen after its first document like any other.
bool SeenDocuments::place(Hash128 hash) {
  if (hash == Hash128{}) hash.low = 1;
  Part& part = parts_[hash.high >> 56];
  const auto at = [&] {
    size_t i = hash.low & (part.slots.size() - 1);
    while (part.slots[i] != Hash128{} && part.slots[i] != hash) i = (i + 1) & (part.slots.size() - 1);
    return i;
  };
  if ((part.used + 1) * 4 > part.slots.size() * 3) {
    std::vector<Hash128> old = std::move(part.slots);
    part.slots.assign(std::max<size_t>(64, old.size() * 2), {});
    const Hash128 kept = hash;
    for (const Hash128 other : old)
      if (other != Hash128{}) hash = other, part.slots[at()] = other;
    hash = kept;
  }
  Hash128& slot = part.slots[at()];
  if (slot == hash) return false;
  slot = hash;
  ++part.used;
  return true;
}

void SeenDocuments::write() {
  std::string hashes;
  hashes.swap(unwritten_);
  file_->append(hashes);
}

bool SeenDocuments::insert(Hash128 hash) {
  if (!place(hash)) return false;
  ++count_;
  unwritten_.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  if (unwritten_.size() >= (1 << 16)) write();
  return true;
}

void SeenDocuments::sync() {
  if (!unwritten_.empty()) write();
  file_->sync();
}

}  // namespace braid::models::text
