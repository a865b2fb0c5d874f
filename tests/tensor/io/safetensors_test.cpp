#include "braid/tensor/io/safetensors.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "braid/tensor/io/checksum.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(io_safetensors)

using io::SafetensorsFile;
using io::TensorFiles;

namespace {

std::string with_header(const std::string& header, const std::string& data) {
  const uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + header + data;
}

void check_equal(const Tensor& a, const Tensor& b) {
  BOOST_TEST((a.dtype() == b.dtype()));
  BOOST_TEST(str(a.shape()) == str(b.shape()));
  const Tensor c = b.contiguous();
  BOOST_TEST(std::memcmp(a.raw(), c.raw(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0);
}

// A header with one or two tensors over eight bytes of data, and the message that its mistake gets.
void rejects(const std::string& header, const std::string& part, const std::string& data = "12345678") {
  TempFolder folder;
  const std::string path = folder.write("bad.safetensors", with_header(header, data));
  BRAID_CHECK_FAILS(SafetensorsFile{path}, ErrorKind::input, path, part);
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"x": {"dtype": )" + dtype + R"(, "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_type_and_shape_survives) {
  TempFolder folder;
  io::NamedTensors all;
  int i = 0;
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    all.emplace_back("b." + std::to_string(i++), from_values({1, 2, 3, 4, 5, 250}, {2, 3}, t));
    all.emplace_back("a." + std::to_string(i++), from_values({7}, {}, t));
    all.emplace_back("empty." + std::to_string(i++), zeros({3, 0, 2}, t));
    all.emplace_back("long." + std::to_string(i++), arange(24, t).reshaped({1, 2, 1, 3, 2, 1, 2, 1}));
  }
  all.emplace_back("empty and long", empty({int64_t{1} << 40, 0, int64_t{1} << 40}));
  all.emplace_back("ä \"name\"\n", from_values({1, 2, 3, 4, 5, 6}, {3, 2}).transposed());
  const uint32_t crc = io::save_safetensors(folder / "a.safetensors", all, {{"format", "pt"}, {"step", "7"}});
  const std::string bytes = folder.read("a.safetensors");
  BOOST_TEST(crc == io::crc32c(bytes.data(), static_cast<int64_t>(bytes.size())));
  const SafetensorsFile f(folder / "a.safetensors");
  BOOST_TEST(f.tensors().size() == all.size());
  BOOST_TEST(f.metadata().at("step") == "7");
  BOOST_TEST(std::is_sorted(f.tensors().begin(), f.tensors().end(),
                            [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const auto& [name, tensor] : all) {
    check_equal(f.load(name), tensor);
    const auto* info = f.find(name);
    BOOST_REQUIRE(info);
    BOOST_TEST(info->offset % size_of(info->dtype) == 0);
    BOOST_TEST(str(info->shape) == str(tensor.shape()));
  }
  BOOST_TEST(f.find("none") == nullptr);
  BRAID_CHECK_FAILS(f.load("none"), ErrorKind::input, "no tensor \"none\"", "a.safetensors");
  std::reverse(all.begin(), all.end());
  io::save_safetensors(folder / "b.safetensors", all, {{"step", "7"}, {"format", "pt"}});
  BOOST_TEST((folder.read("b.safetensors") == bytes));  // the order given does not matter
}

BOOST_AUTO_TEST_CASE(no_tensor_at_all_is_a_file_too) {
  TempFolder folder;
  io::save_safetensors(folder / "a.safetensors", {});
  BOOST_TEST(SafetensorsFile(folder / "a.safetensors").tensors().empty());
}

BOOST_AUTO_TEST_CASE(writing_rejects_bad_names) {
  TempFolder folder;
  const Tensor x = zeros({2});
  BRAID_CHECK_FAILS(io::save_safetensors(folder / "a", {{"x", x}, {"x", x}}), ErrorKind::misuse,
                    "\"x\" is given twice");
  BRAID_CHECK_FAILS(io::save_safetensors(folder / "a", {{"", x}}), ErrorKind::misuse, "no name");
  BRAID_CHECK_FAILS(io::save_safetensors(folder / "a", {{"__metadata__", x}}), ErrorKind::misuse, "no name");
  BRAID_CHECK_FAILS(io::save_safetensors(folder / "a", {{"x", Tensor()}}), ErrorKind::misuse, "\"x\" is empty");
  BRAID_CHECK_FAILS(io::save_safetensors(folder / "a", {{"\xff", x}}), ErrorKind::misuse, "UTF-8");
  BRAID_CHECK_FAILS(io::save_safetensors(folder / "no/a", {{"x", x}}), ErrorKind::output, "no/a");
  BOOST_TEST(folder.entries() == 0u);
}

BOOST_AUTO_TEST_CASE(reads_what_others_write) {
  TempFolder folder;
  // Unpadded header, data not in order of the names and not aligned: all allowed.
  const std::string header =
      R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"a":{"dtype":"I32","shape":[1],"data_offsets":[3,7]},)"
      R"("c":{"dtype":"BOOL","shape":[],"data_offsets":[7,8]}}   )";
  const SafetensorsFile f(folder.write("a.safetensors", with_header(header, std::string("abc\x05\0\0\0\1", 8))));
  BOOST_TEST(f.load("a").item() == 5.0);
  BOOST_TEST(f.load("b").to_vector<uint8_t>() == (std::vector<uint8_t>{'a', 'b', 'c'}),
             boost::test_tools::per_element());
  BOOST_TEST(!f.find("c")->loadable);
  BRAID_CHECK_FAILS(f.load("c"), ErrorKind::input, "cannot load the tensor \"c\"", "found BOOL");
  int32_t elements[2] = {};
  f.read(*f.find("a"), 0, 1, elements);
  BOOST_TEST(elements[0] == 5);
  for (const auto& [first, count] : {std::pair{-1, 1}, {1, -1}, {0, 2}, {1, 1}})
    BRAID_CHECK_FAILS(f.read(*f.find("a"), first, count, elements), ErrorKind::misuse,
                      "elements outside of the tensor \"a\" of " + folder / "a.safetensors");
  BRAID_CHECK_FAILS(f.read(*f.find("c"), 0, 1, elements), ErrorKind::misuse, "outside of the tensor \"c\"");
}

BOOST_AUTO_TEST_CASE(mistakes_in_the_header_name_the_tensor) {
  rejects(one("\"F32\"", "[2]", "[0, 4]"), "bad tensor \"x\"");
  rejects(one("\"F32\"", "[1]", "[0, 8]"), "4 bytes for F32 (1), found 8");
  rejects(one("\"F32\"", "[2]", "[4, 12]"), "within the 8 bytes of data, found [4,12]");
  rejects(one("\"F32\"", "[2]", "[8, 0]"), "in order");
  rejects(one("\"F32\"", "[2]", "[0, 18446744073709551615]"), "within the 8 bytes");
  rejects(one("\"F32\"", "[2]", "[-1, 8]"), "two integers");
  rejects(one("\"F32\"", "[2]", "[0.0, 8.0]"), "two integers");
  rejects(one("\"F32\"", "[2]", "[0]"), "two integers");
  rejects(one("\"F32\"", "[2]", "[0, \"8\"]"), "two integers, found [0,\"8\"]");
  rejects(one("\"F33\"", "[2]", "[0, 8]"), "a known dtype, found \"F33\"");
  rejects(one("7", "[2]", "[0, 8]"), "a known dtype, found 7");
  rejects(one("\"F32\"", "[-2]", "[0, 8]"), "integers");
  rejects(one("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0, 8]"), "at most 8 sizes");
  rejects(one("\"F32\"", "2", "[0, 8]"), "at most 8 sizes");
  rejects(one("\"F32\"", "[4611686018427387904, 2]", "[0, 8]"), "fits 64 bits");
  rejects(one("\"F32\"", "[18446744073709551615]", "[0, 8]"), "integers");
  rejects(one("\"F32\"", "[18446744073709551615]", "[0, 4]"), "integers", "1234");
  rejects(one("\"F32\"", "[4294967296, 4294967296, 0]", "[0, 8]"), "0 bytes for F32");
  rejects(one("\"F32\"", "[1]", "[0, 4]"), "bytes that belong to no tensor", "1234567");
  rejects(one("\"F32\"", "[1]", "[4, 8]"), "a hole");
  rejects(R"({"x": 5})", "at byte 8: expected an object with dtype, shape and data_offsets, found 5");
  rejects(R"({"x": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8], "more": 1}})", "an object with dtype");
  rejects(R"({"x": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},)"
          R"("y": {"dtype": "U8", "shape": [1], "data_offsets": [7, 8]}})",
          "an overlap");
  rejects(R"({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},)"
          R"("x": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}})",
          "\"x\" twice");
  rejects(R"({"__metadata__": 5})", "bad __metadata__", "");
  rejects(R"({"__metadata__": {"a": 5}})", "an object of strings, found 5", "");
  rejects("[]", "a JSON object, from its first byte on, found \"[]\"", "");
  rejects(" {}", "a JSON object, from its first byte on, found \" {}\"", "");
  rejects("\xef\xbb\xbf{}", "a JSON object, from its first byte on", "");
  rejects("{\"x\"", "at byte 12", "");
  rejects("{}" + std::string("\0", 1), "at byte 10", "");
  rejects(std::string(1000, '['), "nested too deeply", "");
  rejects("{}", "at byte 10: expected the end of the file, found 3 more bytes", "xyz");
}

BOOST_AUTO_TEST_CASE(truncation_at_every_byte_and_absurd_lengths_are_rejected) {
  TempFolder folder;
  io::save_safetensors(folder / "a.safetensors", {{"w", zeros({3})}, {"v", zeros({2}, DType::i64)}});
  const std::string good = folder.read("a.safetensors");
  for (size_t n = 0; n < good.size(); ++n)
    BRAID_CHECK_FAILS(SafetensorsFile(folder.write("cut", good.substr(0, n))), ErrorKind::input, "cut");
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, ~uint64_t{0}, uint64_t{1} << 63}) {
    std::string bad = good;
    std::memcpy(bad.data(), &length, 8);
    BRAID_CHECK_FAILS(SafetensorsFile(folder.write("bad", bad)), ErrorKind::input, "a header of 2 to",
                      "found " + std::to_string(length));
  }
}

BOOST_AUTO_TEST_CASE(a_model_in_one_file_or_several) {
  TempFolder folder;
  const Tensor a = from_values({1, 2}, {2}), b = from_values({3}, {1}), c = from_values({4}, {1});
  const std::string dir = folder / "model";
  std::filesystem::create_directory(dir);
  BRAID_CHECK_FAILS(TensorFiles{dir}, ErrorKind::input, "no weights in " + dir, "found neither");
  io::save_safetensors(dir + "/model.safetensors", {{"a", a}});
  check_equal(TensorFiles(dir).load("a"), a);
  check_equal(TensorFiles(dir + "/model.safetensors").load("a"), a);
  io::save_safetensors(dir + "/one.safetensors", {{"a", a}, {"c", c}});
  io::save_safetensors(dir + "/two.safetensors", {{"b", b}});
  const std::string index = "model/model.safetensors.index.json";
  folder.write(index, R"({"weight_map": {"c": "one.safetensors", "a": "one.safetensors", "b": "two.safetensors"}})");
  BRAID_CHECK_FAILS(TensorFiles{dir}, ErrorKind::input, "found both");
  std::filesystem::remove(dir + "/model.safetensors");
  for (const std::string& path : {dir, folder / index}) {
    const TensorFiles f(path);
    BOOST_REQUIRE_EQUAL(f.tensors().size(), 3u);
    BOOST_TEST(f.tensors()[1].name == "b");
    check_equal(f.load("a"), a);
    check_equal(f.load("b"), b);
    check_equal(f.load("c"), c);
    BOOST_TEST(f.find("d") == nullptr);
    BRAID_CHECK_FAILS(f.load("d"), ErrorKind::input, "no tensor \"d\"");
  }
  const auto fails = [&](const std::string& text, const std::string& part) {
    folder.write(index, text);
    BRAID_CHECK_FAILS(TensorFiles{dir}, ErrorKind::input, index, part);
  };
  fails(R"({"weight_map": {"a": "one.safetensors", "b": "one.safetensors", "c": "one.safetensors"}})",
        "\"b\" is missing");
  fails(R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})", "\"c\"");
  fails(R"({"weight_map": {"a": "../one.safetensors"}})", "without folder");
  fails(R"({"weight_map": {"a": 5}})", "without folder");
  fails(R"({"weight_map": {}})", "weight_map");
  fails("[]", "weight_map");
  const std::string files =
      R"("weight_map": {"a": "one.safetensors", "b": "two.safetensors", "c": "one.safetensors"}})";
  fails(R"({"metadata": {"total_size": 17}, )" + files, "the \"total_size\" of its tensors, 16 bytes, found 17");
  fails(R"({"metadata": {"total_size": "16"}, )" + files, "found \"16\"");
  for (const char* right : {"{\"total_size\": 16}", "{\"total_size\": 16.0}", "{}", "5"}) {
    folder.write(index, "{\"metadata\": " + std::string(right) + ", " + files);
    BOOST_TEST(TensorFiles(dir).tensors().size() == 3u);
  }
  folder.write(index, R"({"weight_map": {"a": "three.safetensors"}})");
  BRAID_CHECK_FAILS(TensorFiles{dir}, ErrorKind::input, "cannot open", "three.safetensors");
}

BOOST_AUTO_TEST_CASE(several_files_are_written_and_read_back) {
  TempFolder folder;
  int made = 0;
  const auto source = [&](const char* name, double value) {
    return io::TensorSource{name, DType::f32, {1}, [&made, value] {
                              ++made;
                              return from_values({value}, {1});
                            }};
  };
  const std::string dir = folder.path.string();
  io::save_sharded(dir, {{"x.safetensors", {source("a", 1), source("c", 3)}}, {"y.safetensors", {source("b", 2)}}},
                   {{"format", "pt"}});
  BOOST_TEST(made == 3);
  const TensorFiles f(dir);
  BOOST_TEST(f.sharded());
  BOOST_TEST((f.file_of("a") == "x.safetensors" && f.file_of("b") == "y.safetensors"));
  check_equal(f.load("c"), from_values({3}, {1}));
  BOOST_TEST(f.metadata().at("format") == "pt");
  BOOST_TEST(folder.read("model.safetensors.index.json").find("\"total_size\": 12") != std::string::npos);
  BRAID_CHECK_FAILS(f.file_of("d"), ErrorKind::input, "no tensor \"d\"");
  BRAID_CHECK_FAILS(io::save_sharded(dir, {{"x", {source("a", 1)}}, {"y", {source("a", 1)}}}), ErrorKind::misuse,
                    "the name \"a\" is given twice");
  const std::vector<io::TensorSource> wrong = {{"a", DType::f32, {2}, [] { return from_values({1}, {1}); }}};
  BRAID_CHECK_FAILS(io::save_lazily(dir + "/z.safetensors", wrong), ErrorKind::misuse, "not what was announced");
  BOOST_TEST(!std::filesystem::exists(dir + "/z.safetensors"));
}

BOOST_AUTO_TEST_SUITE_END()
