#include "braid/tensor/io/gguf.h"

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "braid/autograd/int8.h"
#include "tests/support/places.h"
#include "tests/support/random.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(io_gguf)

namespace {

using io::GgufFile;
using io::GgufValue;
using Metadata = std::vector<std::pair<std::string, GgufValue>>;

io::GgufSource plain(const std::string& name, const std::string& type, const Tensor& x) {
  return {name, type, x.shape(), [x] { return x; }};
}
io::GgufSource groups(const std::string& name, const GroupWeight& w, int64_t in) {
  return {name, w.bits == 8 ? "Q8_0" : "Q4_0", {w.values.dim(0), in}, {}, [w] { return w; }};
}

const Metadata kMetadata = {{"general.architecture", std::string("llama")},
                            {"a.integer", int64_t{7}},
                            {"a.number", 1e-5},
                            {"a.flag", true},
                            {"a.list", std::vector<int64_t>{3, -1}},
                            {"a.numbers", std::vector<double>{0.5, -2}},
                            {"a.texts", std::vector<std::string>{"", "é", "x y"}}};

struct Small {
  Tensor w = normal_tensor({3, 96}, 0.3, {1, 1});
  GroupWeight eight = quantize_groups(w, 8), four = quantize_groups(w, 4);
  Tensor f32 = normal_tensor({5}, 1, {1, 2}).to(DType::f32), f16 = normal_tensor({2, 3}, 1, {1, 3}).to(DType::f16),
         bf16 = normal_tensor({2, 2, 4}, 1, {1, 4}).to(DType::bf16);
  std::vector<io::GgufSource> sources = {plain("f32", "F32", f32), groups("eight", eight, 96), plain("f16", "F16", f16),
                                         groups("four", four, 96), plain("bf16", "BF16", bf16)};
};

std::string written(const Metadata& metadata, const std::vector<io::GgufSource>& sources) {
  TempFolder folder;
  io::write_gguf(folder / "a.gguf", metadata, sources);
  return folder.read("a.gguf");
}
GgufFile opened(const std::string& bytes) { return {std::as_bytes(std::span(bytes)), "a.gguf"}; }

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.to_vector<double>() == b.to_vector<double>();
}

// A file by hand: `tensor` is what follows the name "t" of its one tensor, in front of the data.
std::string file_of(const std::string& pairs, uint64_t n_pairs, const std::string& tensor = "",
                    const std::string& data = "") {
  const auto number = [](uint64_t n) { return std::string(reinterpret_cast<const char*>(&n), 8); };
  std::string bytes = std::string("GGUF\3\0\0\0", 8) + number(tensor.empty() ? 0 : 1) + number(n_pairs) + pairs;
  if (!tensor.empty()) bytes += number(1) + "t" + tensor;
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes + data;
}
template <class T>
std::string raw(T x) {
  return {reinterpret_cast<const char*>(&x), sizeof x};
}
// rank, sizes (innermost first), type, offset
std::string tensor_of(const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset = 0) {
  std::string bytes = raw(static_cast<uint32_t>(sizes.size()));
  for (const uint64_t n : sizes) bytes += raw(n);
  return bytes + raw(type) + raw(offset);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  const Small small;
  const std::string bytes = written(kMetadata, small.sources);
  const GgufFile file = opened(bytes);
  BOOST_TEST(file.metadata().size() == kMetadata.size());
  for (const auto& [key, value] : kMetadata) BOOST_TEST((file.metadata().at(key) == value), key);
  BOOST_REQUIRE(file.tensors().size() == small.sources.size());
  BOOST_TEST(same(file.load(*file.find("f32")), small.f32));
  BOOST_TEST(same(file.load(*file.find("f16")), small.f16));
  BOOST_TEST(same(file.load(*file.find("bf16")), small.bf16));
  for (const auto& [name, w] : {std::pair{"eight", small.eight}, {"four", small.four}}) {
    const io::GgufTensor& t = *file.find(name);
    BOOST_TEST(GgufFile::in_groups(t));
    const GroupWeight read = file.groups(t);
    BOOST_TEST(same(read.values, w.values));
    BOOST_TEST(same(read.scale, w.scale));
    BOOST_TEST(same(file.load(t), dequantize_groups(w, 96)));
  }
  BOOST_TEST(file.find("none") == nullptr);
  BOOST_TEST(written(kMetadata, small.sources) == bytes);
  BOOST_TEST(file.find("eight")->bytes == 3 * 3 * 34);
  BOOST_TEST(file.find("four")->bytes == 3 * 3 * 18);
}

// Blocks with random bits, and the values that the package gguf gives (scripts/check_gguf --write): bit for bit.
BOOST_AUTO_TEST_CASE(blocks_of_every_type_have_the_values_of_the_reference) {
  const GgufFile file(std::string(source_dir()) + "/tests/golden/gguf/blocks.gguf");
  int read = 0;
  for (const io::GgufType& type : io::gguf_types()) {
    if (!type.decode) continue;
    BOOST_TEST_CONTEXT(type.name) {
      const io::GgufTensor *blocks = file.find(type.name), *values = file.find(std::string(type.name) + ".values");
      BOOST_REQUIRE(blocks);
      BOOST_REQUIRE(values);
      BOOST_TEST(blocks->bytes == 256 / type.block * type.bytes);
      const Tensor x = file.load(*blocks), expected = file.load(*values);
      BOOST_REQUIRE((x.shape() == Shape{1, 256} && expected.shape() == x.shape()));
      BOOST_TEST(std::memcmp(x.raw(), expected.raw(), 1024) == 0);
      ++read;
    }
  }
  BOOST_TEST(read == 12);
}

BOOST_AUTO_TEST_CASE(every_truncated_file_is_rejected) {
  const std::string bytes = written(kMetadata, Small().sources);
  const GgufFile file = opened(bytes);
  const io::GgufTensor& last = file.tensors().back();
  for (size_t n = 0; n < static_cast<size_t>(last.offset + last.bytes); ++n) {
    const std::string part = bytes.substr(0, n);
    BRAID_CHECK_FAILS(opened(part), ErrorKind::input, "a.gguf");
  }
  BRAID_CHECK_FAILS(opened(bytes + std::string(32, '\0')), ErrorKind::input, "bad end of the GGUF file");
}

// A byte with other bits is an error of input or a file that can be read, never anything else.
BOOST_AUTO_TEST_CASE(every_changed_byte_is_rejected_or_harmless) {
  const std::string bytes = written(kMetadata, Small().sources);
  int rejected = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int bits : {1, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ bits);
      try {
        const GgufFile file = opened(changed);
        for (const io::GgufTensor& t : file.tensors()) {
          BOOST_REQUIRE(t.offset + t.bytes <= static_cast<int64_t>(bytes.size()));
          BOOST_REQUIRE(file.load(t).numel() == numel(t.shape));
          if (GgufFile::in_groups(t)) file.groups(t);
        }
      } catch (const Error& e) {
        BOOST_REQUIRE(e.kind() == ErrorKind::input);
        ++rejected;
      }
    }
  }
  BOOST_TEST(rejected > 300);
}

BOOST_AUTO_TEST_CASE(mistakes_are_named) {
  const auto rejects = [](const std::string& bytes, const std::string& text) {
    BRAID_CHECK_FAILS(opened(bytes), ErrorKind::input, text, "a.gguf");
  };
  rejects("GGUX" + std::string(30, '\0'), "not a GGUF file");
  rejects(std::string("GGUF\1\0\0\0", 8) + std::string(16, '\0'), "expected version 2 or 3");
  rejects(std::string("GGUF\3\0\0\0", 8) + raw(UINT64_MAX) + raw(uint64_t{0}), "counts that fit");
  const auto pair = [](const std::string& key, uint32_t type, const std::string& value) {
    return raw(static_cast<uint64_t>(key.size())) + key + raw(type) + value;
  };
  rejects(file_of(pair("k", 13, ""), 1), "a type of 0 to 12, found 13");
  rejects(file_of(pair("k", 7, "\2"), 1), "0 or 1, found 2");
  rejects(file_of(pair("k", 10, raw(UINT64_MAX)), 1), "an integer below 2^63");
  rejects(file_of(pair("k", 8, raw(UINT64_MAX)), 1), "bad length of k");
  rejects(file_of(pair("k", 9, raw(uint32_t{9}) + raw(uint64_t{1})), 1), "an array of numbers, flags or strings");
  rejects(file_of(pair("k", 9, raw(uint32_t{10}) + raw(uint64_t{1} << 61)), 1), "which the file can hold");
  rejects(file_of(pair("k", 0, "\1") + pair("k", 0, "\1"), 2), "k twice");
  rejects(file_of(pair("general.alignment", 4, raw(uint32_t{24})), 1), "a power of two");
  const std::string data(64, '\0');
  rejects(file_of("", 0, tensor_of({}, 0), data), "1 to 4 axes, found 0");
  rejects(file_of("", 0, tensor_of({1, 1, 1, 1, 1}, 0), data), "1 to 4 axes, found 5");
  rejects(file_of("", 0, tensor_of({0}, 0), data), "sizes of at least 1");
  rejects(file_of("", 0, tensor_of({uint64_t{1} << 62, 4}, 0), data), "whose product fits 63 bits");
  rejects(file_of("", 0, tensor_of({uint64_t{1} << 62}, 0), data), "bytes that fit 63 bits");
  rejects(file_of("", 0, tensor_of({16}, 99), data), "type 99");
  rejects(file_of("", 0, tensor_of({16}, 2), data), "rows of Q4_0 of a multiple of 32, found 16");
  rejects(file_of("", 0, tensor_of({64}, 0), data), "data within the");
  rejects(file_of("", 0, tensor_of({8}, 0, 32), data), "its data at 0");
  const std::string unknown = file_of("", 0, tensor_of({256}, 21), std::string(110, '\0'));
  const GgufFile file = opened(unknown);
  BRAID_CHECK_FAILS(file.load(file.tensors()[0]), ErrorKind::input, "IQ4_NL, IQ4_XS, found IQ3_S");
  rejects(file_of("", 0, tensor_of({128}, 12), data), "rows of Q4_K of a multiple of 256, found 128");
  rejects(file_of("", 0, tensor_of({256}, 12), data), "data within the");
  const std::string infinite = file_of("", 0, tensor_of({32, 1}, 8), std::string("\0\x7c", 2) + std::string(32, '\1'));
  const GgufFile inf = opened(infinite);
  BRAID_CHECK_FAILS(inf.groups(inf.tensors()[0]), ErrorKind::input, "finite scales");
}

BOOST_AUTO_TEST_SUITE_END()
