#include "braid/tensor/io/reader.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <thread>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(io_reader)

BOOST_AUTO_TEST_CASE(reads_little_endian_numbers_strings_and_positions) {
  TempFolder folder;
  io::Reader r(folder.write("a.bin", std::string("\x01\x02\x03\x04\xff\xff hello", 12)));
  BOOST_TEST(r.size() == 12);
  BOOST_TEST(r.read<uint32_t>() == 0x04030201u);
  BOOST_TEST(r.read<int16_t>() == -1);
  BOOST_TEST(r.position() == 6);
  BOOST_TEST(r.remaining() == 6);
  BOOST_TEST(r.read_string(6) == " hello");
  r.seek(1);
  BOOST_TEST(r.read<uint8_t>() == 2);
  char byte = 0;
  r.read_at(7, &byte, 1);
  BOOST_TEST(byte == 'h');
  BOOST_TEST(r.position() == 2);
  char rest[64];
  BOOST_TEST(r.read_some(rest, 64) == 10);
  BOOST_TEST(r.read_some(rest, 64) == 0);
}

BOOST_AUTO_TEST_CASE(memory_and_file_behave_alike) {
  const std::string bytes = "0123456789";
  io::Reader r(std::as_bytes(std::span(bytes)), "memory");
  BOOST_TEST(r.read_string(3) == "012");
  io::Reader moved(std::move(r));
  BOOST_TEST(moved.read_string(7) == "3456789");
  BRAID_CHECK_FAILS(moved.read<uint8_t>(), ErrorKind::input, "memory at byte 10", "expected 1 bytes", "found 0");
}

BOOST_AUTO_TEST_CASE(never_reads_or_allocates_past_the_end) {
  TempFolder folder;
  const std::string path = folder.write("short.bin", "abc");
  io::Reader r(path);
  r.seek(1);
  BRAID_CHECK_FAILS(r.read<uint32_t>(), ErrorKind::input, path + " at byte 1", "expected 4 bytes", "found 2");
  BOOST_TEST(r.position() == 1);
  BRAID_CHECK_FAILS(r.read_string(int64_t{1} << 62), ErrorKind::input, "at byte 1", "found 2 before the end");
  BRAID_CHECK_FAILS(r.read_string(-1), ErrorKind::input, "expected -1 bytes");
  BRAID_CHECK_FAILS(r.seek(4), ErrorKind::input, "up to 3", "found 4");
  BRAID_CHECK_FAILS(r.seek(-1), ErrorKind::input, "found -1");
  char byte;
  BRAID_CHECK_FAILS(r.read_at(INT64_MAX, &byte, INT64_MAX), ErrorKind::input, "found 0 before the end");
  r.seek(3);
  BOOST_TEST(r.remaining() == 0);
}

BOOST_AUTO_TEST_CASE(notices_a_file_that_shrinks_while_open) {
  TempFolder folder;
  const std::string path = folder.write("a.bin", "abcdef");
  io::Reader r(path);
  std::filesystem::resize_file(path, 2);
  BRAID_CHECK_FAILS(r.read_string(6), ErrorKind::input, "at byte 2", "truncated it while it was being read");
}

BOOST_AUTO_TEST_CASE(rejects_what_is_not_a_regular_file) {
  TempFolder folder;
  BRAID_CHECK_FAILS(io::Reader(folder / "missing"), ErrorKind::input, "cannot open", "missing", "No such file");
  BRAID_CHECK_FAILS(io::Reader(folder.path.string()), ErrorKind::input, "expected a file, found a folder");
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  BRAID_CHECK_FAILS(io::Reader(folder / "pipe"), ErrorKind::input, "expected a file, found a device or pipe");
}

BOOST_AUTO_TEST_CASE(text_files_have_a_limit) {
  TempFolder folder;
  const std::string path = folder.write("a.txt", "hello");
  BOOST_TEST(io::read_text_file(path, 5) == "hello");
  BRAID_CHECK_FAILS(io::read_text_file(path, 4), ErrorKind::input, "too large in " + path, "at most 4", "found 5");
  BOOST_TEST(io::read_text_file(folder.write("empty", ""), 5).empty());
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const int64_t limit : {5, 4}) {
    std::thread writer([&] { std::ofstream(folder / "pipe") << "hello"; });
    if (limit == 5)
      BOOST_TEST(io::read_text_file(folder / "pipe", 5) == "hello");
    else
      BRAID_CHECK_FAILS(io::read_text_file(folder / "pipe", 4), ErrorKind::input, "too large", "at most 4",
                        "found more");
    writer.join();
  }
}

BOOST_AUTO_TEST_SUITE_END()
