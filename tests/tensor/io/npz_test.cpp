#include "braid/tensor/io/npz.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;
using braid::test::is_close;

BOOST_AUTO_TEST_SUITE(io_npz)

using io::NpzFile;

namespace {

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

// numpy.savez_compressed(file, x=numpy.arange(3, dtype='i4'), flag=numpy.array([True, False]))
const std::string& compressed_by_numpy() {
  static const std::string bytes = from_hex(
      "504b03042d00000008000000210002ecbda9ffffffffffffffff05001400782e6e7079010010008c000000000000004c000000000000009b"
      "ec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a2aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a"
      "c63a9a3a0ab50a14002e062060046226200600504b03042d000000080000002100ee19bb5dffffffffffffffff08001400666c61672e6e70"
      "7901001000820000000000000046000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a05e9364a8aea3a09e965f54529498"
      "179f5f94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a14002e460600504b01022d032d00000008000000210002ecbda94c"
      "0000008c000000050000000000000000000000800100000000782e6e7079504b01022d032d000000080000002100ee19bb5d460000008200"
      "0000080000000000000000000000800183000000666c61672e6e7079504b0506000000000200020069000000030100000000");
  return bytes;
}
// numpy.savez(file, a=numpy.array(7.5))
const std::string& stored_by_numpy() {
  static const std::string bytes = from_hex(
      "504b03042d000000000000002100ee4e1723ffffffffffffffff05001400612e6e7079010010008800000000000000880000000000000093"
      "4e554d5059010076007b276465736372273a20273c6638272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065"
      "273a2028292c207d202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
      "20202020202020202020202020200a0000000000001e40504b01022d032d000000000000002100ee4e172388000000880000000500000000"
      "00000000000000800100000000612e6e7079504b0506000000000100010033000000bf0000000000");
  return bytes;
}

NpzFile open(const std::string& bytes) { return NpzFile(std::as_bytes(std::span(bytes)), "a.npz"); }

void check_compressed(const NpzFile& file) {
  BOOST_TEST(file.names() == (std::vector<std::string>{"x", "flag"}), boost::test_tools::per_element());
  BOOST_TEST(is_close(file.load("x"), from_values({0, 1, 2}, {3}, DType::i32), 0));
  BOOST_TEST(is_close(file.load("flag"), from_values({1, 0}, {2}, DType::u8), 0));
}

}  // namespace

BOOST_AUTO_TEST_CASE(archives_of_numpy_are_read) {
  check_compressed(open(compressed_by_numpy()));
  const NpzFile file = open(stored_by_numpy());
  BOOST_TEST(file.load("a").item() == 7.5);
  BOOST_TEST(file.contains("a"));
  BOOST_TEST(!file.contains("b"));
  BRAID_CHECK_FAILS(file.load("b"), ErrorKind::input, "there is no array \"b\" in a.npz", "which are a");
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  TempFolder folder;
  std::vector<NamedTensor> all;
  for (const DType t : {DType::f64, DType::f32, DType::f16, DType::i64, DType::i32, DType::u8})
    all.emplace_back(str("layer/", t), from_values({1, 2, 3, 4, 5, 250}, {2, 3}, t));
  all.emplace_back("ä", from_values({1, 2, 3, 4, 5, 6}, {3, 2}).transposed());
  all.emplace_back("empty", zeros({0, 3}));
  all.emplace_back("one", full({}, 7));
  all.emplace_back("long", arange(100'000));  // several buffers of the decompression
  for (const bool compressed : {false, true}) {
    io::save_npz(folder / "a.npz", all, {.compressed = compressed});
    const std::string bytes = folder.read("a.npz");
    const std::vector<NamedTensor> read = io::load_npz(folder / "a.npz");
    BOOST_REQUIRE(read.size() == all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      BOOST_TEST(read[i].name == all[i].name);
      BOOST_TEST(str(read[i].value.dtype()) == str(all[i].value.dtype()));
      BOOST_TEST(is_close(read[i].value, all[i].value, 0));
    }
    BOOST_TEST((bytes.size() < 300'000) == compressed);
    io::save_npz(folder / "b.npz", all, {.compressed = compressed});
    BOOST_TEST((folder.read("b.npz") == bytes));
  }
  io::save_npz(folder / "none.npz", {});
  BOOST_TEST(NpzFile(folder / "none.npz").names().empty());
}

BOOST_AUTO_TEST_CASE(damage_is_found) {
  for (const std::string& good : {compressed_by_numpy(), stored_by_numpy()}) {
    const auto load_all = [](const NpzFile& file) {
      std::vector<NamedTensor> all;
      for (const std::string& name : file.names()) all.emplace_back(name, file.load(name));
      return all;
    };
    const std::vector<NamedTensor> wanted = load_all(open(good));
    for (size_t n = 0; n < good.size(); ++n)
      BRAID_CHECK_FAILS(load_all(open(good.substr(0, n))), ErrorKind::input, "a.npz");
    int found = 0;
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(~bad[i]);
      try {  // dates, versions and the like change nothing
        for (const NamedTensor& x : load_all(open(bad)))
          for (const NamedTensor& y : wanted)
            if (x.name == y.name) BOOST_TEST(is_close(x.value, y.value, 0));
      } catch (const Error& e) {
        BOOST_TEST((e.kind() == ErrorKind::input));
        ++found;
      }
    }
    BOOST_TEST(found > static_cast<int>(good.size()) * 2 / 3);
  }
}

BOOST_AUTO_TEST_CASE(errors_inside_an_array_name_it) {
  std::string bytes = stored_by_numpy();
  bytes[bytes.find("<f8") + 1] = 'c';
  BRAID_CHECK_FAILS(open(bytes).load("a"), ErrorKind::input, "in a.npz: a.npy", "found complex64 ('<c8')");
  bytes = stored_by_numpy();
  bytes[bytes.find("\x1e\x40")] = '\x1f';
  BRAID_CHECK_FAILS(open(bytes).load("a"), ErrorKind::input, "bad entry \"a.npy\" in a.npz", "the checksum 23174eee");
}

BOOST_AUTO_TEST_CASE(writing_rejects_bad_names_and_types) {
  TempFolder folder;
  const Tensor x = zeros({2});
  const auto rejects = [&](const std::vector<NamedTensor>& tensors, const std::string& part) {
    BRAID_CHECK_FAILS(io::save_npz(folder / "a.npz", tensors), ErrorKind::misuse, "[save_npz] ", part);
  };
  rejects({{"x", x}, {"x", x}}, "the name \"x\" is given twice");
  rejects({{"", x}}, "\"\" is no name for an array");
  rejects({{std::string("a\0b", 3), x}}, "is no name for an array");
  rejects({{"x", Tensor()}}, "the tensor \"x\" is empty");
  rejects({{"x", x.to(DType::bf16)}}, "NumPy has no type for bf16");
  BRAID_CHECK_FAILS(io::save_npz(folder / "no/a.npz", {{"x", x}}), ErrorKind::output, "no/a.npz");
  BOOST_TEST(folder.entries() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
