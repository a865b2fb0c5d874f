#include "braid/tensor/io/zip_file.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/io/zip_writer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(io_zip_file)

using io::ZipFile;

namespace {

template <class T>
std::string le(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

constexpr uint32_t crc_of_abc = 0x352441c2;

// The parts of an archive with an entry that holds "abc", and what is changed about them.
struct Parts {
  std::string name = "a", local_name = "a", data = "abc", extra, comment;
  uint16_t flags = 0, method = 0, local_method = 0, count = 1, disk = 0;
  uint32_t crc = crc_of_abc, compressed = 3, bytes = 3, offset = 0;

  std::string head() const {
    return "PK\3\4" + le(uint16_t{20}) + le(flags) + le(local_method) + le(uint32_t{0}) + le(crc) + le(compressed) +
           le(bytes) + le(static_cast<uint16_t>(local_name.size())) + le(uint16_t{0}) + local_name;
  }
  std::string directory() const {
    return "PK\1\2" + le(uint16_t{20}) + le(uint16_t{20}) + le(flags) + le(method) + le(uint32_t{0}) + le(crc) +
           le(compressed) + le(bytes) + le(static_cast<uint16_t>(name.size())) +
           le(static_cast<uint16_t>(extra.size())) + le(uint16_t{0}) + le(uint16_t{0}) + le(uint16_t{0}) +
           le(uint32_t{0}) + le(offset) + name + extra;
  }
  std::string end(size_t bytes_of_directory, size_t begin) const {
    return "PK\5\6" + le(disk) + le(disk) + le(count) + le(count) + le(static_cast<uint32_t>(bytes_of_directory)) +
           le(static_cast<uint32_t>(begin)) + le(static_cast<uint16_t>(comment.size())) + comment;
  }
  std::string file() const {
    const std::string front = head() + data;
    return front + directory() + end(directory().size(), front.size());
  }
};

std::string read(const ZipFile& file, size_t entry = 0) {
  std::string bytes(static_cast<size_t>(file.entries()[entry].bytes), '\0');
  file.open(file.entries()[entry], [&](const ZipFile::Read& next) {
    const auto half = static_cast<int64_t>(bytes.size() / 2);
    next(bytes.data(), half);
    next(bytes.data() + half, std::ssize(bytes) - half);
  });
  return bytes;
}

template <class Change>
void rejects(Change&& change, const std::string& part) {
  Parts parts;
  change(parts);
  const std::string bytes = parts.file();
  BRAID_CHECK_FAILS(read(ZipFile(std::as_bytes(std::span(bytes)), "a.zip")), ErrorKind::input, "a.zip", part);
}

std::string read_file(const std::string& bytes) { return read(ZipFile(std::as_bytes(std::span(bytes)), "a.zip")); }

}  // namespace

BOOST_AUTO_TEST_CASE(an_entry_is_read) {
  Parts parts;
  BOOST_TEST(read_file(parts.file()) == "abc");
  parts.comment = "a comment, with PK\5\6 in it";
  BOOST_TEST(read_file(parts.file()) == "abc");
  parts.data = std::string("\x4b\x4c\x4a\x06\0", 5);
  parts.method = parts.local_method = 8;
  parts.compressed = 5;
  BOOST_TEST(read_file(parts.file()) == "abc");
}

BOOST_AUTO_TEST_CASE(what_is_not_read_is_named) {
  rejects([](Parts& p) { p.flags = 1; },
          "cannot read \"a\" in a.zip: expected an entry that is stored or deflated, "
          "found an encrypted one");
  rejects([](Parts& p) { p.method = p.local_method = 14; }, "found compression method 14");
  rejects([](Parts& p) { p.disk = 1; }, "an archive in one file, found a part of one");
}

BOOST_AUTO_TEST_CASE(contradictions_are_found) {
  rejects([](Parts& p) { p.crc ^= 1; }, "the checksum 352441c3, found 352441c2");
  rejects([](Parts& p) { p.local_name = "b"; }, "the name \"a\", as in the directory, found another");
  rejects([](Parts& p) { p.local_name = "aa"; }, "the name \"a\"");
  rejects([](Parts& p) { p.name = p.local_name = ""; }, "expected a name");
  rejects([](Parts& p) { p.local_method = 8; }, "the compression of the directory");
  rejects([](Parts& p) { p.bytes = 4; }, "an entry of 3 bytes, from 3, found 4");
  rejects([](Parts& p) { p.compressed = p.bytes = 9; }, "data within the 34 bytes before the directory, found 9");
  rejects([](Parts& p) { p.offset = 40; }, "an entry within the 34 bytes");
  rejects([](Parts& p) { p.offset = 5; }, "the header of an entry");
  rejects([](Parts& p) { p.count = 2; }, "at most 1 entries, found 2");
  rejects([](Parts& p) { p.count = 0; }, "the end of a directory of 0 entries");
  rejects([](Parts& p) { p.method = p.local_method = 8, p.bytes = 4000; }, "an entry of at most 3096 bytes, from 3");
  rejects([](Parts& p) { p.extra = std::string("\1\0\10\0", 4); }, "complete extra fields");
  rejects([](Parts& p) { p.bytes = 0xFFFFFFFF, p.extra = std::string("\1\0\2\0ab", 6); }, "64-bit sizes");
  for (const uint64_t bytes : {uint64_t{1} << 63, ~uint64_t{0}, uint64_t{1} << 40})
    rejects([&](Parts& p) { p.bytes = 0xFFFFFFFF, p.extra = std::string("\1\0\10\0", 4) + le(bytes); },
            "an entry of 3 bytes");
}

BOOST_AUTO_TEST_CASE(deflated_data_must_be_what_the_directory_says) {
  const auto rejects_data = [](std::string data, uint32_t bytes, const std::string& part) {
    rejects(
        [&](Parts& p) {
          p.method = p.local_method = 8;
          p.compressed = static_cast<uint32_t>(data.size());
          p.data = data;
          p.bytes = bytes;
        },
        part);
  };
  const std::string abc("\x4b\x4c\x4a\x06\0", 5);
  rejects_data(abc, 2, "expected 2 bytes, found more");
  rejects_data(abc, 4, "expected 4 bytes, found the end of the compressed data");
  rejects_data(abc + "x", 3, "data of 6 bytes, found fewer");
  rejects_data(abc.substr(0, 4), 3, "found data that are cut off");
  rejects_data("\xff\xff\xff", 3, "invalid block type");
}

// A directory need not list entries by their places.
BOOST_AUTO_TEST_CASE(entries_in_any_order) {
  Parts a, b;
  b.name = b.local_name = "b", b.data = "cba", b.crc = 0xd8aef480;
  a.count = 2;
  const std::string front = a.head() + a.data + b.head() + b.data;
  b.offset = static_cast<uint32_t>(a.head().size() + a.data.size());
  const std::string directory = b.directory() + a.directory();
  const std::string bytes = front + directory + a.end(directory.size(), front.size());
  const ZipFile file(std::as_bytes(std::span(bytes)), "a.zip");
  BOOST_TEST(read(file, 0) == "cba");
  BOOST_TEST(read(file, 1) == "abc");
  std::string bad = bytes;
  bad[front.size() + b.directory().size()] = 'X';  // the second entry
  BRAID_CHECK_FAILS(read_file(bad), ErrorKind::input, str("at byte ", front.size() + b.directory().size()),
                    "expected an entry of the directory");
}

// More compressed data than are read at once, asked for in two parts.
BOOST_AUTO_TEST_CASE(deflated_data_of_several_pieces) {
  TempFolder folder;
  std::string text(400'000, '\0');
  uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  io::ZipWriter writer(folder / "a.zip", 10'000'000);
  writer.add("a", {std::as_bytes(std::span(text))}, true);
  writer.commit();
  const ZipFile file(folder / "a.zip");
  BOOST_TEST(file.entries()[0].compressed > 3 * 65536);
  BOOST_TEST((read(file) == text));
}

BOOST_AUTO_TEST_CASE(entries_share_no_bytes) {
  Parts inner, outer;
  inner.name = inner.local_name = "b";
  outer.data = inner.head() + inner.data;
  outer.compressed = outer.bytes = static_cast<uint32_t>(outer.data.size());
  const std::string front = outer.head() + outer.data;
  inner.offset = static_cast<uint32_t>(outer.head().size());
  const std::string directory = outer.directory() + inner.directory();
  outer.count = 2;
  BRAID_CHECK_FAILS(read_file(front + directory + outer.end(directory.size(), front.size())), ErrorKind::input,
                    "entries that lie behind each other, found \"b\" inside of another");
  const std::string twice = outer.directory() + outer.directory();
  BRAID_CHECK_FAILS(read_file(front + twice + outer.end(twice.size(), front.size())), ErrorKind::input,
                    "entries of different names, found \"a\" twice");
}

BOOST_AUTO_TEST_CASE(sizes_of_64_bits) {
  TempFolder folder;
  const std::string text(5000, 'x'), small = "abc";
  const auto part = [](const std::string& s) { return std::as_bytes(std::span(s)); };
  for (const int64_t wide_from : {0, 4, 4000, 10'000'000}) {
    io::ZipWriter writer(folder / "a.zip", wide_from);
    writer.add("small", {part(small)}, false);
    writer.add("stored", {part(text), part(small)}, false);
    writer.add("deflated", {part(small), {}, part(text)}, true);
    writer.add("empty", {}, true);
    writer.commit();
    const ZipFile file(folder / "a.zip");
    BOOST_REQUIRE(file.entries().size() == 4u);
    BOOST_TEST(read(file, 0) == small);
    BOOST_TEST(read(file, 1) == text + small);
    BOOST_TEST(read(file, 2) == small + text);
    BOOST_TEST(read(file, 3) == "");
    BOOST_TEST(file.entries()[2].compressed < 100);
    const std::string bytes = folder.read("a.zip");
    BOOST_TEST((bytes.find("PK\6\7") != std::string::npos) == (wide_from <= 4000));
    if (wide_from > 4000) continue;
    const size_t locator = bytes.find("PK\6\7");
    std::string late = bytes;  // the record of 56 bytes would reach into its locator
    late.replace(locator + 8, 8, le(uint64_t{locator - 55}));
    BRAID_CHECK_FAILS(read_file(late), ErrorKind::input, str("at byte ", locator),
                      str("a record before this byte, found one at ", locator - 55));
    // The record of 64 bits is checked as the other one is.
    for (size_t at = bytes.find("PK\6\6"); at < bytes.size() - 22; ++at) {
      std::string bad = bytes;
      bad[at] = static_cast<char>(bad[at] ^ 0x41);
      try {
        BOOST_TEST(read_file(bad) == small);
      } catch (const Error& e) {
        BOOST_TEST((e.kind() == ErrorKind::input));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
