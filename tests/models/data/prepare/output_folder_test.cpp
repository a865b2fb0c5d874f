#include "braid/models/data/prepare/output_folder.h"

#include <boost/test/unit_test.hpp>

#include "tests/models/data/prepare/support.h"
#include "tests/support/throws.h"

BOOST_AUTO_TEST_SUITE(text_output_folder)

// With the folder of the same name that is not meant beside it.
BOOST_AUTO_TEST_CASE(a_path_through_a_link_leads_where_the_system_says) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "a/b");
  std::filesystem::create_directory_symlink("a/b", folder / "link");
  PrepareOptions o{.inputs = {folder.write("in.txt", "some text\n")}, .output = folder / "out", .val_fraction = 0};
  models::text::prepare(o);
  const std::string other = all_files(folder, "out");
  folder.write("in.txt", "some other text\n");
  o.output = folder / "link/../out";
  o.replace = true;
  BOOST_TEST(models::text::prepare(o).replaced.empty());
  BOOST_TEST((all_files(folder, "out") == other));
  BOOST_TEST(text_of(folder / "a/out", Split::train) == "some other text\n|");

  std::filesystem::create_directory_symlink("nowhere", folder / "dangling");
  o.output = folder / "dangling";
  bool read = false;
  const auto progress = [&](const models::text::PrepareProgress&) { read = true; };
  BRAID_CHECK_FAILS(models::text::prepare(o, progress), ErrorKind::setting, "dangling: it is a link to nothing");
  BOOST_TEST(!read);
}

// The system knows no MISSING/.. either.
BOOST_AUTO_TEST_CASE(a_path_back_from_a_missing_folder_is_refused) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("in.txt", "some text\n")}, .output = folder / "missing/../out"};
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::output, "missing is no folder");
  BOOST_TEST(folder.entries() == 1u);
}

BOOST_AUTO_TEST_CASE(a_file_that_appears_meanwhile_is_not_replaced) {
  TempFolder folder;
  models::text::PreparedFolder prepared(folder / "out");
  folder.write("out", "mine");
  BRAID_CHECK_FAILS(prepared.commit(), ErrorKind::setting, "expected a folder, found a file");
  BOOST_TEST(folder.read("out") == "mine");
}

BOOST_AUTO_TEST_SUITE_END()
