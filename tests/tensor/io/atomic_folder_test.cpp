#include "braid/tensor/io/atomic_folder.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/io/atomic_file.h"
#include "tests/support/in_child.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(io_atomic_folder)

namespace fs = std::filesystem;

namespace {
void put(const io::AtomicFolder& folder, const std::string& name, const std::string& text) {
  io::write_file((folder.path() / name).string(), text);
}
size_t count(const fs::path& folder) { return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {})); }
}  // namespace

BOOST_AUTO_TEST_CASE(a_new_folder_appears_at_commit) {
  const TempFolder temp;
  const fs::path target = temp.path / "a/b";
  {
    io::AtomicFolder folder(target, "last");
    put(folder, "last", "1");
    BOOST_TEST(!fs::exists(target));
    BRAID_CHECK_FAILS(io::AtomicFolder(target, "last"), ErrorKind::output, "another process is writing it");
    BOOST_TEST(folder.commit());
    BOOST_TEST(temp.read("a/b/last") == "1");
  }
  BOOST_TEST(count(temp.path / "a") == 1u);
  { put(io::AtomicFolder(temp.path / "gone", "last"), "last", "1"); }  // without commit()
  BOOST_TEST(temp.entries() == 1u);
  temp.write("file", "x");
  BRAID_CHECK_FAILS(io::AtomicFolder(temp.path / "file", "last"), ErrorKind::setting,
                    "expected a folder, found a file");
  BRAID_CHECK_FAILS(io::AtomicFolder("/", "last"), ErrorKind::setting, "cannot write '/': name a folder");
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_there_keeps_its_own_files) {
  const TempFolder temp;
  temp.write("t/own", "mine");
  const auto make = [&](const std::string& first, const std::string& replaced = "") {
    io::AtomicFolder folder(temp.path / "t/", "last");
    put(folder, "first", first);
    put(folder, "last", "2");
    return folder.commit(replaced);
  };
  BOOST_TEST(make("1"));
  BOOST_TEST(!make("1"));  // the same
  for (const char* text : {"2", "other"})
    BRAID_CHECK_FAILS(make(text), ErrorKind::output, "already holds first, which would be replaced");
  BRAID_CHECK_FAILS(make("other", "last"), ErrorKind::output, "already holds first, which would be replaced");
  BOOST_TEST(temp.read("t/own") + temp.read("t/first") + temp.read("t/last") == "mine12");
  BOOST_TEST(!make("1", "first"));
  BOOST_TEST(make("other", "first"));
  BOOST_TEST(temp.read("t/own") + temp.read("t/first") + temp.read("t/last") == "mineother2");
  BOOST_TEST(count(temp.path / "t") == 3u);
  fs::create_directory_symlink("t", temp.path / "link");
  io::AtomicFolder folder(temp.path / "link", "last");
  put(folder, "third", "3");
  BOOST_TEST(folder.commit());
  BOOST_TEST(temp.read("t/third") == "3");
  BOOST_TEST(folder.target() == temp.path / "t");
}

// All of its files come or none: here a link to nothing takes the place of the last one, or a folder that of the first.
BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_put_takes_the_others_back) {
  const TempFolder temp;
  fs::create_directory(temp.path / "t");
  fs::create_symlink("nowhere", temp.path / "t/last");
  const auto make = [&] {
    io::AtomicFolder folder(temp.path / "t", "last");
    put(folder, "first", "1");
    put(folder, "last", "2");
    folder.commit();
  };
  BRAID_CHECK_FAILS(make(), ErrorKind::output, "cannot put last into", "File exists");
  BOOST_TEST(count(temp.path / "t") == 1u);
  fs::create_directory(temp.path / "t/first");
  BRAID_CHECK_FAILS(make(), ErrorKind::output, "already holds first, which would be replaced");
  BOOST_TEST(count(temp.path / "t") == 2u);
}

BOOST_AUTO_TEST_CASE(a_path_through_a_link_leads_where_the_system_says) {
  const TempFolder temp;
  fs::create_directories(temp.path / "a/b");
  fs::create_directory_symlink("a/b", temp.path / "link");
  io::AtomicFolder folder(temp.path / "link/../new/", "last");
  put(folder, "last", "1");
  BOOST_TEST(folder.commit());
  BOOST_TEST(temp.read("a/new/last") == "1");
  fs::create_directory_symlink("nowhere", temp.path / "dangling");
  BRAID_CHECK_FAILS(io::AtomicFolder(temp.path / "dangling", "last"), ErrorKind::setting, "it is a link to nothing");
}

// A process that is killed between the links of its files.
BOOST_AUTO_TEST_CASE(what_a_killed_process_has_left_is_removed) {
  for (const bool complete : {false, true}) {
    const TempFolder temp;
    temp.write("t/own", "mine");
    BOOST_TEST(test::in_child([&] {
      io::AtomicFolder folder(temp.path / "t", "last");
      put(folder, "first", "old");
      put(folder, "last", "2");
      fs::create_hard_link(folder.path() / "first", temp.path / "t/first");
      if (complete) fs::create_hard_link(folder.path() / "last", temp.path / "t/last");
      ::_exit(0);
      return true;
    }));
    BOOST_TEST(count(temp.path / "t") == (complete ? 4u : 3u));
    {
      const io::AtomicFolder folder(temp.path / "t", "last");
      BOOST_TEST(fs::exists(temp.path / "t/first") == complete);
      BOOST_TEST(count(folder.path()) == 0u);
    }
    BOOST_TEST(count(temp.path / "t") == (complete ? 3u : 1u));
  }
  const TempFolder temp;
  BOOST_TEST(test::in_child([&] {
    put(io::AtomicFolder(temp.path / "t", "last"), "first", "old");
    const io::AtomicFolder folder(temp.path / "t", "last");
    put(folder, "first", "old");
    ::_exit(0);
    return true;
  }));
  BOOST_TEST(temp.entries() == 1u);
  { const io::AtomicFolder folder(temp.path / "t", "last"); }
  BOOST_TEST(temp.entries() == 0u);
}

// Another user may have laid it there.
BOOST_AUTO_TEST_CASE(a_link_in_the_place_of_the_hidden_folder_is_not_followed) {
  const TempFolder temp;
  temp.write("victim/file", "x");
  fs::create_directory_symlink("victim", temp.path / ".t.unfinished");
  BRAID_CHECK_FAILS(io::AtomicFolder(temp.path / "t", "last"), ErrorKind::output, "cannot write");
  BOOST_TEST(temp.read("victim/file") == "x");
}

BOOST_AUTO_TEST_SUITE_END()
