// The files of a folder: each is read once, whatever its names, and what is not read is counted by kind.
#include "braid/models/data/prepare/input_files.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "braid/models/data/prepare/source.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(input_files)

BOOST_AUTO_TEST_CASE(a_file_with_several_names_is_read_once) {
  TempFolder folder;
  folder.write("in/perl", "text");
  folder.write("in/same", "text");  // a copy, no link: --dedup is for those
  folder.write("else/c.txt", "other");
  std::filesystem::create_symlink("perl", folder / "in/perl.u8");
  std::filesystem::create_hard_link(folder / "in/perl", folder / "in/perl.hard");
  std::filesystem::create_symlink(folder / "else/c.txt", folder / "in/c.txt");
  const InputList list = list_inputs({folder / "in"}, "", {});
  std::vector<std::string> names;
  for (const InputFile& file : list.files) names.push_back(std::filesystem::path(file.path).filename().string());
  BOOST_TEST(names == std::vector<std::string>({"c.txt", "perl", "same"}), boost::test_tools::per_element());
  BOOST_REQUIRE(list.notes.size() == 2u);
  BOOST_TEST(list.notes[1].ends_with("in/perl.u8 is the same file as " + (folder / "in/perl") + ": left out"));
  BOOST_TEST(list.left_out.text() == "2 files of 1 MiB (link 2)");
  // What is named twice counts twice: so a corpus gets its weight.
  BOOST_TEST(list_inputs({folder / "in/perl", folder / "in/perl"}, "", {}).files.size() == 2u);
  BOOST_TEST(list_inputs({folder / "in", folder / "in"}, "", {}).files.size() == 6u);
}

BOOST_AUTO_TEST_CASE(what_is_left_out_is_counted_by_kind_also_after_a_resume) {
  TempFolder folder;
  folder.write("in/a.txt", "text");
  for (const char* name : {"in/b.PDF", "in/c.pdf"}) folder.write(name, "%PDF-1.4 x");
  folder.write("in/d.png", "\x89PNG\r\n\x1a\n");
  folder.write("in/e.txt", "");
  folder.write("in/z.txt", "end");
  TextSource source({folder / "in"}, {});
  Piece piece;
  BOOST_REQUIRE(source.next(piece));
  SourcePosition end;
  do end = piece.after;
  while (source.next(piece));
  BOOST_TEST(source.left_out().text() == "4 files of 1 MiB (pdf 2, empty 1, png 1)");
  TextSource rest({folder / "in"}, {});
  BOOST_TEST(rest.left_out().files == 0);
  rest.go_to(end);
  while (rest.next(piece)) continue;
  BOOST_TEST(rest.left_out().text() == source.left_out().text());
  BOOST_TEST(rest.notes.empty());

  LeftOut many;
  for (const char* name : {"a.b", "a.c", "a.d", "a.e", "a.f", "a.g", "a.h", "README", "x.h"}) many.add(name, 1 << 20);
  BOOST_TEST(many.text() == "9 files of 9 MiB (h 2, b 1, c 1, d 1, e 1, f 1, others 2)");
}

BOOST_AUTO_TEST_SUITE_END()
