#include "braid/models/data/text/shard.h"

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "braid/tensor/io/checksum.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(text_shard)

using models::text::ShardReader;
using models::text::ShardWriter;

namespace {

std::vector<int32_t> some_tokens(int64_t n, int64_t vocab) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < n; ++i) tokens.push_back(static_cast<int32_t>(i * 7919 % vocab));
  return tokens;
}

// Puts the right header checksum under a header that was changed on purpose.
std::string reseal(std::string file) {
  const uint32_t crc = io::crc32c(file.data(), 60);
  std::memcpy(file.data() + 60, &crc, 4);
  return file;
}

}  // namespace

BOOST_AUTO_TEST_CASE(round_trip_at_block_borders_in_both_widths) {
  TempFolder folder;
  const int64_t block = models::text::shard_block_bytes;
  for (const int64_t vocab : {int64_t{258}, int64_t{65536}, int64_t{65537}}) {
    const int64_t width = vocab <= 65536 ? 2 : 4, per_block = block / width;
    for (const int64_t n : {int64_t{0}, int64_t{1}, per_block - 1, per_block, per_block + 1, 2 * per_block + 5}) {
      const auto tokens = some_tokens(n, vocab);
      ShardWriter w(folder / "a.tok", vocab, 77);
      w.write(std::span(tokens).first(static_cast<size_t>(n / 3)));
      w.write(std::span(tokens).subspan(static_cast<size_t>(n / 3)));
      const auto header = w.commit();
      const ShardReader r(folder / "a.tok");
      BOOST_TEST(r.tokens() == n);
      BOOST_TEST(r.header().vocab_size == vocab);
      BOOST_TEST(r.header().token_bytes == width);
      BOOST_TEST(r.header().tokenizer_fingerprint == 77u);
      BOOST_TEST(r.header().checksum == header.checksum);
      std::vector<int32_t> all(static_cast<size_t>(n));
      r.read(0, all);
      BOOST_TEST((all == tokens));
      r.verify();
      if (n > per_block) {
        std::vector<int32_t> some(5);
        r.read(per_block - 4, some);
        for (size_t i = 0; i < 5; ++i) BOOST_TEST(some[i] == tokens[static_cast<size_t>(per_block) - 4 + i]);
      }
      BRAID_CHECK_FAILS(r.read(n, std::span(all.data(), 1)), ErrorKind::misuse, "are outside of");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_anywhere_is_noticed) {
  TempFolder folder;
  ShardWriter w(folder / "a.tok", 258, 1);
  w.write(some_tokens(300, 258));
  w.commit();
  const std::string good = folder.read("a.tok");
  for (size_t byte = 0; byte < good.size(); ++byte) {
    std::string bad = good;
    bad[byte] ^= static_cast<char>(1 << byte % 8);
    const std::string path = folder.write("bad.tok", bad);
    BOOST_CHECK_EXCEPTION(ShardReader(path).verify(), Error, [&](const Error& e) {
      return says(e, ErrorKind::input, {path, "braid prepare"}) || says(e, ErrorKind::input, {path, "BRAIDTOK"});
    });
  }
}

BOOST_AUTO_TEST_CASE(damage_is_named_with_block_and_byte_when_it_is_touched) {
  TempFolder folder;
  const int64_t per_block = models::text::shard_block_bytes / 2;
  ShardWriter w(folder / "a.tok", 258, 1);
  w.write(some_tokens(3 * per_block, 258));
  w.commit();
  std::string bad = folder.read("a.tok");
  bad[64 + (1 << 20) + 100] ^= 1;
  const std::string path = folder.write("bad.tok", bad);
  const ShardReader r(path);
  std::vector<int32_t> one(1);
  for (const int64_t whole : {int64_t{0}, per_block - 1, 2 * per_block}) r.read(whole, one);  // up to the damage
  BRAID_CHECK_FAILS(r.read(per_block, one), ErrorKind::input, "block 1 in " + path + " at byte 1048640",
                    "braid prepare");
  BRAID_CHECK_FAILS(r.read(per_block, one), ErrorKind::input, "block 1");  // and again, not only the first time
}

BOOST_AUTO_TEST_CASE(truncation_and_foreign_files_are_rejected_at_once) {
  TempFolder folder;
  ShardWriter w(folder / "a.tok", 258, 1);
  w.write(some_tokens(100, 258));
  w.commit();
  const std::string good = folder.read("a.tok");
  for (size_t n = 0; n < good.size(); ++n)
    BRAID_CHECK_FAILS(ShardReader(folder.write("cut.tok", good.substr(0, n))), ErrorKind::input, "cut.tok");
  BRAID_CHECK_FAILS(ShardReader(folder.write("long.tok", good + "x")), ErrorKind::input, "the file's size",
                    "expected 268 bytes, found 269");
  BRAID_CHECK_FAILS(ShardReader(folder.write("t.tok", std::string(100, 'x'))), ErrorKind::input, "BRAIDTOK");
  const auto changed = [&](size_t byte, char value) {
    std::string bad = good;
    bad[byte] = value;
    return folder.write("bad.tok", reseal(bad));
  };
  std::string unsealed = good;
  unsealed[30] ^= 1;
  BRAID_CHECK_FAILS(ShardReader(folder.write("bad.tok", unsealed)), ErrorKind::input, "at byte 60",
                    "the header's checksum");
  BRAID_CHECK_FAILS(ShardReader(changed(8, 2)), ErrorKind::input, "expected version 1, found 2");
  BRAID_CHECK_FAILS(ShardReader(changed(12, 4)), ErrorKind::input, "bytes per token");
  BRAID_CHECK_FAILS(ShardReader(changed(23, '\x80')), ErrorKind::input,
                    "number of tokens");  // a product would overflow

  BRAID_CHECK_FAILS(ShardReader(changed(48, 2)), ErrorKind::input, "number of blocks", "expected 1, found 2");
  BRAID_CHECK_FAILS(ShardReader(changed(56, static_cast<char>(good[56] ^ 1))), ErrorKind::input,
                    "the checksum of the checksum table");
  for (const bool large : {false, true}) {  // 0 is no vocabulary, nor is 2^63
    std::string bad = good;
    bad[24] = bad[25] = '\0';
    bad[31] = large ? '\x80' : '\0';
    BRAID_CHECK_FAILS(ShardReader(folder.write("bad.tok", reseal(bad))), ErrorKind::input, "at byte 24",
                      "vocabulary size");
  }
  // A block size of 0, and another one than that of this program.
  BRAID_CHECK_FAILS(ShardReader(changed(42, 0)), ErrorKind::input, "at byte 40", "block size", "found 0");
  BRAID_CHECK_FAILS(ShardReader(changed(42, 32)), ErrorKind::input, "block size", "expected 1048576, found 2097152");
}

BOOST_AUTO_TEST_CASE(ids_outside_the_vocabulary_are_rejected_on_both_sides) {
  TempFolder folder;
  ShardWriter w(folder / "a.tok", 258, 1);
  for (const int64_t none : {int64_t{0}, int64_t{1} << 31})
    BRAID_CHECK_FAILS(ShardWriter(folder / "n.tok", none, 1), ErrorKind::misuse,
                      "size out of range: " + std::to_string(none));
  BRAID_CHECK_FAILS(w.write(std::vector<int32_t>{0, 258}), ErrorKind::misuse, "token id 258", "vocabulary of 258");
  BRAID_CHECK_FAILS(w.write(std::vector<int32_t>{-1}), ErrorKind::misuse, "token id -1");
  ShardWriter v(folder / "b.tok", 300, 1);
  v.write(std::vector<int32_t>{1, 299});
  v.commit();
  std::string bad = folder.read("b.tok");
  bad[24] = 2;  // vocabulary 300 -> 258, with a right checksum
  const ShardReader r(folder.write("c.tok", reseal(bad)));
  std::vector<int32_t> two(2);
  for (const int64_t first : {-1, 1, 3})
    BRAID_CHECK_FAILS(r.read(first, two), ErrorKind::misuse,
                      "tokens " + std::to_string(first) + " to " + std::to_string(first + 2) + " are outside");
  for (const int64_t first : {0, 1})
    BRAID_CHECK_FAILS(r.read(first, std::span(two).first(static_cast<size_t>(2 - first))), ErrorKind::input,
                      "c.tok at byte 66", "an id below 258, found 299");
}

BOOST_AUTO_TEST_SUITE_END()
