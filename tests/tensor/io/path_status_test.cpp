#include "braid/tensor/io/path_status.h"

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>

#include "braid/tensor/io/reader.h"
#include "tests/support/in_child.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(io_path_status)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(what_is_there_and_what_is_not) {
  const TempFolder folder;
  const fs::path file = folder.write("file", "four");
  fs::create_directory_symlink(".", folder.path / "around");
  fs::create_symlink("nothing", folder.path / "dangling");
  BOOST_TEST(io::exists(file));
  BOOST_TEST(io::path_status(file)->st_size == 4);
  BOOST_TEST(io::is_file(folder.path / "around/file"));
  BOOST_TEST((io::is_folder(folder.path / "around") && io::is_link(folder.path / "around")));
  BOOST_TEST((io::is_link(folder.path / "dangling") && !io::exists(folder.path / "dangling")));
  for (const fs::path& none : {folder.path / "none", file / "below", fs::path(), fs::path(std::string(500, '1')),
                               fs::path(std::string(5000, '1'))}) {
    BOOST_TEST(!io::exists(none));
    BOOST_TEST((!io::is_file(none) && !io::is_folder(none) && !io::is_link(none) && !io::is_same(none, none)));
    BOOST_TEST(io::list_folder(none).empty());
  }
  BOOST_TEST(io::is_same(file, folder.path / "around/file"));
  BOOST_TEST(!io::is_same(file, folder.path));
  const fs::path real = fs::canonical(folder.path);
  BOOST_TEST(io::real_path(folder.path / "around/none") == real / "none");
  BOOST_TEST(io::real_path(folder.path / "around/../none") == real.parent_path() / "none");
  BOOST_TEST(io::real_path("../none") == fs::canonical("..") / "none");
  for (const std::string name : {"none", "file", "dangling"})
    BRAID_CHECK_FAILS(io::real_path(folder.path / name / "../x", ErrorKind::output), ErrorKind::output,
                      "/" + name + " is no folder");
}

BOOST_AUTO_TEST_CASE(folders_are_listed_by_name) {
  const TempFolder folder;
  for (const char* name : {"b", "a", ".c", "sub/x", "sub/deep/y"}) folder.write(name, "");
  fs::create_directory_symlink("sub", folder.path / "link");
  fs::create_symlink("nothing", folder.path / "dangling");
  const auto names = [&](const std::vector<fs::path>& paths) {
    std::string text;
    for (const fs::path& path : paths) text += path.lexically_relative(folder.path).string() + " ";
    return text;
  };
  BOOST_TEST(names(io::list_folder(folder.path)) == ".c a b dangling link sub ");
  BOOST_TEST(names(io::files_below(folder.path)) == ".c a b sub/deep/y sub/x ");
}

// What the system cannot tell is not taken for an absence.
BOOST_AUTO_TEST_CASE(an_error_is_no_absence) {
  const TempFolder folder;
  const std::string file = folder.write("file", "x");
  fs::create_symlink("loop", folder.path / "loop");
  const fs::path loop = folder.path / "loop/file";
  BOOST_CHECK_THROW(io::exists(loop), io::SystemError);
  BRAID_CHECK_FAILS(io::exists(loop), ErrorKind::input, "cannot look up " + loop.string(), "symbolic links");
  BRAID_CHECK_FAILS(io::is_folder(loop, ErrorKind::output), ErrorKind::output, "symbolic links");
  BRAID_CHECK_FAILS(io::list_folder(loop), ErrorKind::input, "cannot list the folder " + loop.string());
  BOOST_CHECK_THROW(io::Reader(loop.string()), io::SystemError);
  BOOST_TEST(test::in_child([&] {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const auto fails = [](auto&& work) {
      try {
        work();
        return false;
      } catch (const io::SystemError& e) {
        return std::string(e.what()).find("Too many open files") != std::string::npos;
      }
    };
    return fails([&] { io::list_folder(folder.path); }) && fails([&] { io::Reader reader(file); }) && io::exists(file);
  }));
}

BOOST_AUTO_TEST_SUITE_END()
