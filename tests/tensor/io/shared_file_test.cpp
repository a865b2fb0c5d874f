#include "braid/tensor/io/shared_file.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(io_shared_file)

BOOST_AUTO_TEST_CASE(pieces_of_several_writers_make_the_file_and_its_checksum) {
  TempFolder folder;
  const std::string path = folder / "file", text = "the quick brown fox";
  io::make_shared_file(path, static_cast<int64_t>(text.size()));
  io::SharedFile a(path), b(path);
  b.write(10, text.data() + 10, 9);
  a.write(4, text.data() + 4, 6);
  b.write(0, text.data(), 4);
  a.commit();
  b.commit();
  BOOST_TEST(folder.read("file") == text);
  BOOST_TEST((a.share() ^ b.share()) == io::crc32c(text.data(), static_cast<int64_t>(text.size())));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_written_is_said) {
  TempFolder folder;
  BRAID_CHECK_FAILS(io::make_shared_file(folder / "none/file", 8), ErrorKind::output, "No such file or directory");
  BRAID_CHECK_FAILS(io::SharedFile(folder / "file"), ErrorKind::output, "one that all processes see");
  BRAID_CHECK_FAILS(io::make_shared_file(folder / "file", int64_t{1} << 62), ErrorKind::output, "cannot write",
                    "after 0 bytes");
  io::make_shared_file(folder / "empty", 0);
  BOOST_TEST(folder.read("empty").empty());
  io::make_shared_file(folder / "file", 8);
  io::SharedFile file(folder / "file");
  for (const auto& [offset, n] : {std::pair<int64_t, int64_t>{4, 5}, {-1, 1}, {0, -1}})
    BRAID_CHECK_FAILS(file.write(offset, "abcdefgh", n), ErrorKind::misuse, "outside of the file");
  file.commit();
  BRAID_CHECK_FAILS(file.commit(), ErrorKind::misuse, "a file that is closed");
  BRAID_CHECK_FAILS(file.write(0, "a", 1), ErrorKind::misuse, "after commit()");
}

// The plan is that of the file that save_safetensors writes.
BOOST_AUTO_TEST_CASE(a_safetensors_file_in_pieces) {
  TempFolder folder;
  Tensor a = arange(6, DType::f32).reshaped({2, 3}), b = arange(4, DType::f64);
  io::save_safetensors(folder / "whole", {{"a", a}, {"b", b}}, {{"format", "pt"}});
  io::SafetensorsPlan plan =
      io::plan_safetensors({{"a", DType::f32, {2, 3}, {}}, {"b", DType::f64, {4}, {}}}, {{"format", "pt"}});
  io::make_shared_file(folder / "pieces", plan.bytes);
  io::SharedFile file(folder / "pieces");
  file.write(0, plan.head.data(), static_cast<int64_t>(plan.head.size()));
  for (const io::TensorInfo& info : plan.tensors) file.write(info.offset, (info.name == "a" ? a : b).raw(), info.bytes);
  file.commit();
  BOOST_TEST(folder.read("pieces") == folder.read("whole"));
  io::SafetensorsFile read(folder / "pieces");
  float part[2];
  read.read(*read.find("a"), 3, 2, part);
  BOOST_TEST(part[1] == 4.0f);
  BRAID_CHECK_FAILS(read.read(*read.find("a"), 5, 2, part), ErrorKind::misuse, "outside of the tensor \"a\"");
}

BOOST_AUTO_TEST_SUITE_END()
