#include "braid/tensor/io/npy.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;
using braid::test::is_close;

BOOST_AUTO_TEST_SUITE(io_npy)

namespace {

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

// A file of version `major`.0 with this dictionary, not padded.
std::string npy(const std::string& header, const std::string& data, char major = 1) {
  std::string file("\x93NUMPY", 6);
  file += major;
  file += '\0';
  for (int byte = 0; byte < (major == 1 ? 2 : 4); ++byte) file += static_cast<char>(header.size() >> (8 * byte) & 0xff);
  return file + header + data;
}
std::string dictionary(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

Tensor load(const std::string& bytes) { return io::load_npy(std::as_bytes(std::span(bytes)), "a.npy"); }

template <class T>
std::string raw(std::initializer_list<T> numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(T));
}

void rejects(const std::string& bytes, const std::string& part) {
  BRAID_CHECK_FAILS(load(bytes), ErrorKind::input, "a.npy", part);
}
void rejects_header(const std::string& header, const std::string& part) { rejects(npy(header, ""), part); }

}  // namespace

BOOST_AUTO_TEST_CASE(the_bytes_are_those_of_numpy) {
  TempFolder folder;
  io::save_npy(folder / "a.npy", from_values({1, 2, 3, 4, 5, 6}, {2, 3}));
  std::string expected("\x93NUMPY\x01\0\x76\0", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  expected += std::string(127 - expected.size(), ' ') + "\n" + raw<float>({1, 2, 3, 4, 5, 6});
  BOOST_TEST(folder.read("a.npy") == expected);
  io::save_npy(folder / "b.npy", from_vector(std::vector<uint8_t>{250}, {1}));
  BOOST_TEST(folder.read("b.npy").substr(10, 56) == "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), ");
}

BOOST_AUTO_TEST_CASE(every_type_and_shape_survives) {
  TempFolder folder;
  const std::string path = folder / "a.npy";
  for (const DType t : {DType::f64, DType::f32, DType::f16, DType::i64, DType::i32, DType::u8}) {
    const Tensor six = from_values({1, 2, 3, 4, 5, 250}, {2, 1, 3}, t);
    for (const Tensor& x : {six, six.transposed(0, 2), six.sliced(2, 1, 3), full({}, 7, t), zeros({3, 0, 2}, t),
                            full({1}, 9, t), six.sliced(0, 0, 1).expanded({4, 1, 3})}) {
      io::save_npy(path, x);
      const Tensor y = io::load_npy(path);
      BOOST_TEST(str(y.dtype()) == str(t));
      BOOST_TEST(is_close(y, x, 0));
      BOOST_TEST(y.is_contiguous());
    }
  }
}

BOOST_AUTO_TEST_CASE(byte_orders_and_orders_of_axes) {
  const std::string big("\x40\x40\0\0\xbf\x80\0\0", 8);
  BOOST_TEST(is_close(values(load(npy(dictionary("'>f4'", "(2,)"), big))), {3, -1}, 0));
  BOOST_TEST(is_close(values(load(npy(dictionary("'>f2'", "()"), "\x3e\x01"))), {1.5009765625}, 0));
  BOOST_TEST(is_close(values(load(npy(dictionary("'>i8'", "(1,)"), std::string("\0\0\0\0\0\0\1\2", 8)))), {258}, 0));
  BOOST_TEST(is_close(values(load(npy(dictionary("'=i4'", "(1,)"), raw<int32_t>({-5})))), {-5}, 0));
  const Tensor x = load(npy(dictionary("'<i4'", "(2, 3)", "True"), raw<int32_t>({1, 4, 2, 5, 3, 6})));
  BOOST_TEST(is_close(x, from_values({1, 2, 3, 4, 5, 6}, {2, 3}, DType::i32), 0));
  BOOST_TEST(x.is_contiguous());
  const Tensor y = load(npy(dictionary("'|u1'", "(1, 2, 2)", "True"), "\1\2\3\4"));
  BOOST_TEST(is_close(y, from_values({1, 3, 2, 4}, {1, 2, 2}, DType::u8), 0));
}

BOOST_AUTO_TEST_CASE(booleans_are_zero_and_one) {
  const Tensor x = load(npy(dictionary("'|b1'", "(4,)"), std::string("\0\1\x7f\xff", 4)));
  BOOST_TEST((x.dtype() == DType::u8));
  BOOST_TEST(is_close(values(x), {0, 1, 1, 1}, 0));
}

BOOST_AUTO_TEST_CASE(versions_and_spellings) {
  const std::string five = raw<int32_t>({5});
  for (const char major : {'\1', '\2', '\3'})
    BOOST_TEST(load(npy(dictionary("'<i4'", "(1,)"), five, major)).item() == 5);
  for (const char* header : {"{'shape': (1,), 'descr': '<i4', 'fortran_order': False}",
                             "{\"descr\":\"<i4\",\"fortran_order\":True,\"shape\":(1,)}",
                             " { 'descr' : '<i4' , 'fortran_order' : False , 'shape' : ( 1L , ) , } \n",
                             "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1,), }"})
    BOOST_TEST(load(npy(header, five)).item() == 5);
}

BOOST_AUTO_TEST_CASE(other_types_are_named) {
  const auto rejects_type = [](const std::string& descr, const std::string& name) {
    rejects(npy(dictionary(descr, "(1,)"), "12345678"), "found " + name);
    rejects(npy(dictionary(descr, "(1,)"), "12345678"), "expected elements of float64");
  };
  rejects_type("'<i2'", "int16 ('<i2')");
  rejects_type("'>u4'", "uint32 ('>u4')");
  rejects_type("'<c16'", "complex128 ('<c16')");
  rejects_type("'<f16'", "float128 ('<f16')");
  rejects_type("'|O'", "Python objects ('|O')");
  rejects_type("'<U7'", "strings ('<U7')");
  rejects_type("'|S3'", "strings ('|S3')");
  rejects_type("'<M8[ns]'", "dates or times ('<M8[ns]')");
  rejects_type("'|V2'", "raw bytes ('|V2')");
  rejects_type("[('a', '<f4'), ('b', '<i2')]", "a structured type");
  rejects_type("'<i'", "int ('<i')");
  rejects_type("'__import__'", "the type ('__import__')");
  rejects_type("''", "the type ('')");
  rejects_type("'<i4611686018427387904'", "int ('<i4611686018427387904')");
}

BOOST_AUTO_TEST_CASE(bad_headers_name_the_byte) {
  rejects_header("", "bad .npy header in a.npy at byte 10: expected a dictionary, found the end of the header");
  rejects_header("[1]", "expected a dictionary, found [1]");
  rejects_header("{'descr': '<f4', 'shape': (1,)}", "the keys 'descr', 'fortran_order' and 'shape'");
  rejects_header("{'descr': '<f4', 'descr': '<f4'}", "at byte 27: expected each of");
  rejects_header("{'name': 1}", "each of 'descr', 'fortran_order' and 'shape' once, found 'name': 1}");
  rejects_header("{'descr': <f4}", "a type in quotes, found <f4}");
  rejects_header("{'descr': '<f4", "a type in quotes");
  rejects_header("{'descr': '\\x3cf4'}", "a type in quotes");
  rejects_header("{'descr' '<f4'}", "expected ':'");
  rejects_header("{'descr': '<f4' 'shape': ()}", "',' or '}'");
  rejects_header(dictionary("'<f4'", "(1,)", "1"), "True or False, found 1");
  rejects_header(dictionary("'<f4'", "3"), "a tuple of sizes, found 3");
  rejects_header(dictionary("'<f4'", "(3)"), "a tuple, such as (3,)");
  rejects_header(dictionary("'<f4'", "(,)"), "a size of 0 or more");
  rejects_header(dictionary("'<f4'", "(2 3)"), "',' or ')'");
  rejects_header(dictionary("'<f4'", "(-1,)"), "a size of 0 or more, found -1");
  rejects_header(dictionary("'<f4'", "(os.system('x'),)"), "a size of 0 or more, found os.system");
  rejects_header(dictionary("'<f4'", "(9223372036854775808,)"), "a size that fits 63 bits");
  rejects_header(dictionary("'<f4'", "(4294967296, 4294967296)"), "less than 2^62 bytes");
  rejects_header(dictionary("'<f4'", "(1,1,1,1,1,1,1,1,1,1,1,1)"), "dimensions, found more");
  rejects_header(dictionary("'<f4'", "(0,)") + "x", "the end of the header, found x");
}

BOOST_AUTO_TEST_CASE(lengths_are_checked_before_anything_is_allocated) {
  const std::string good = npy(dictionary("'<f4'", "(2,)"), "12345678");
  for (size_t n = 0; n < good.size(); ++n) rejects(good.substr(0, n), "truncated, damaged or of another kind");
  rejects(good + "9", "8 bytes for f32 (2), found 9");
  rejects(npy(dictionary("'<f8'", "(1125899906842624,)"), "12345678"), "9007199254740992 bytes for f64");
  rejects("\x93NUMPX" + good.substr(6), "the bytes 93 4E 55 4D 50 59");
  rejects(npy("{}", "", 4), "format version 1.0, 2.0 or 3.0, found 4.0");
  std::string long_header = npy("{}", "", 2);
  long_header.replace(8, 4, "\xff\xff\xff\x7f");
  rejects(long_header, "a header of at most 2 bytes, found 2147483647");
  BOOST_TEST(load(npy(dictionary("'<f4'", "(0, 9223372036854775807, 9223372036854775807)"), "")).numel() == 0);
}

BOOST_AUTO_TEST_CASE(writing) {
  TempFolder folder;
  BRAID_CHECK_FAILS(io::save_npy(folder / "a.npy", zeros({2}, DType::bf16)), ErrorKind::misuse,
                    "[save_npy] NumPy has no type for bf16: save cast(x, DType::f32)");
  BRAID_CHECK_FAILS(io::save_npy(folder / "a.npy", Tensor()), ErrorKind::misuse, "an empty Tensor handle");
  BRAID_CHECK_FAILS(io::save_npy(folder / "no/a.npy", zeros({2})), ErrorKind::output, "no/a.npy");
  BRAID_CHECK_FAILS(io::load_npy(folder / "none.npy"), ErrorKind::input, "cannot open", "none.npy");
  BOOST_TEST(folder.entries() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
