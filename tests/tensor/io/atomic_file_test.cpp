#include "braid/tensor/io/atomic_file.h"

#include "braid/tensor/io/file_system.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>
#include <thread>

#include "tests/support/in_child.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(io_atomic_file)

namespace {

// While it lives, no file may grow beyond `bytes`: what a full disk looks like to one process.
struct FileSizeLimit {
  rlimit old{};
  void (*old_handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old);
    rlimit now{bytes, old.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, old_handler);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(appears_only_at_commit_and_replaces_whole) {
  TempFolder folder;
  folder.write("a.txt", "old");
  {
    io::AtomicFile file(folder / "a.txt");
    file.write("HEAD");
    file.write(" new content");
    file.write_at(0, "head", 4);
    file.write("!");
    BOOST_TEST(file.size() == 17);
    BOOST_TEST(folder.read("a.txt") == "old");
    file.commit();
    BRAID_CHECK_FAILS(file.write("more"), ErrorKind::misuse, "closed");
    BRAID_CHECK_FAILS(file.write_at(0, "H", 1), ErrorKind::misuse, "outside of what was written");
    BRAID_CHECK_FAILS(file.commit(), ErrorKind::misuse, "closed");
  }
  BOOST_TEST(folder.read("a.txt") == "head new content!");
  BOOST_TEST(folder.entries() == 1u);
}

BOOST_AUTO_TEST_CASE(large_and_small_writes_keep_their_order) {
  TempFolder folder;
  std::string expected;
  io::AtomicFile file(folder / "a.bin");
  for (int i = 0; i < 40; ++i) {
    const std::string part(static_cast<size_t>(i % 7 == 6 ? 300'000 : i * 3001), static_cast<char>('a' + i % 26));
    expected += part;
    file.write(part);
  }
  BRAID_CHECK_FAILS(file.write_at(file.size() - 1, "ab", 2), ErrorKind::misuse, "outside");
  BRAID_CHECK_FAILS(file.write_at(-1, "ab", 2), ErrorKind::misuse, "outside");
  file.write_at(file.size() - 2, expected.data() + expected.size() - 2, 2);  // the last two
  file.commit();
  BOOST_TEST((folder.read("a.bin") == expected));
}

BOOST_AUTO_TEST_CASE(without_commit_nothing_changes) {
  TempFolder folder;
  folder.write("a.txt", "old");
  { io::AtomicFile(folder / "a.txt").write(std::string(1 << 20, 'x')); }
  BOOST_TEST(folder.read("a.txt") == "old");
  BOOST_TEST(folder.entries() == 1u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_the_old_file_and_no_temporary) {
  TempFolder folder;
  const std::string path = folder.write("a.bin", "old");
  for (const size_t bytes : {size_t{5000}, size_t{1} << 20}) {  // fails in commit(), and in write()
    FileSizeLimit limit(4096);
    BRAID_CHECK_FAILS(io::write_file(path, std::string(bytes, 'x')), ErrorKind::output, "cannot write " + path,
                      "after 4096 bytes: File too large", "unchanged");
    BOOST_TEST(folder.entries() == 1u);
  }
  BOOST_TEST(folder.read("a.bin") == "old");
  FileSizeLimit limit(4096);
  io::AtomicFile file(path);
  BRAID_CHECK_FAILS(file.write(std::string(1 << 20, 'x')), ErrorKind::output, "after 4096 bytes");
  BRAID_CHECK_FAILS(file.commit(), ErrorKind::misuse, "closed");
}

// Temporaries of the same name that no process holds.
BOOST_AUTO_TEST_CASE(what_a_killed_process_has_left_is_removed) {
  TempFolder folder;
  const char* others[] = {
      "a.bin.tmp-x",           "a.bin.tmp-2",         "a.bin.tmp-2024-11-30",  "a.bin.tmp-12-0a1b2c3d4",
      "a.bin.tmp-12-november", "a.bin.tmp--0a1b2c3d", "a.bin.tmp-12.0a1b2c3d", "b.bin.tmp-12-0a1b2c3d"};
  for (const char* name : {"a.bin.tmp-9-00000000", "a.bin.tmp-12-0a1b2c3d"}) folder.write(name, "large");
  for (const char* name : others) folder.write(name, "of the user");
  folder.write("victim", "x");
  std::filesystem::create_symlink("victim", folder / "a.bin.tmp-1-00000002");  // is not followed
  BOOST_TEST(test::in_child([&] {
    io::AtomicFile file(folder / "a.bin");
    file.write("half");
    ::_exit(0);
    return true;
  }));
  BOOST_TEST(folder.entries() == 11u);  // what was there before is gone, but for that of the child
  io::AtomicFile held(folder / "a.bin"), other(folder / "a.bin");  // living ones stay
  BOOST_TEST(folder.entries() == 12u);
  held.write("1");
  held.commit();
  other.commit();
  BOOST_TEST(folder.entries() == 11u);
  for (const char* name : others) BOOST_TEST(folder.read(name) == "of the user", name);
  BOOST_TEST(std::filesystem::exists(folder / "a.bin"));
  BOOST_TEST(std::filesystem::is_symlink(folder / "a.bin.tmp-1-00000002"));
  BOOST_TEST(folder.read("victim") == "x");
}

// As a user who may not write a file without the right to: the superuser may.
BOOST_AUTO_TEST_CASE(what_a_killed_process_has_left_beside_a_read_only_file_is_removed) {
  TempFolder folder;
  const std::string path = folder / "a.bin";
  std::filesystem::permissions(folder.path, std::filesystem::perms(0777));
  BOOST_TEST(test::in_child([&] {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && ::seteuid(nobody) != 0) return false;
    io::write_file(path, "old");
    std::filesystem::permissions(path, std::filesystem::perms(0444));
    for (int killed = 0; killed < 2; ++killed)
      test::in_child([&] {
        io::AtomicFile file(path);
        file.write("half");
        ::_exit(0);
        return true;
      });
    if (folder.entries() != 2) return false;  // that of the first is gone already
    const std::string complete = folder.write("a.bin.tmp-9-00000000", "killed before the rename");
    std::filesystem::permissions(complete, std::filesystem::perms(0444));
    io::write_file(path, "new");
    return true;
  }));
  BOOST_TEST(folder.entries() == 1u);
  BOOST_TEST(folder.read("a.bin") == "new");
  BOOST_TEST(static_cast<unsigned>(std::filesystem::status(path).permissions()) == 0444u);
}

BOOST_AUTO_TEST_CASE(names_may_have_255_bytes) {
  TempFolder folder;
  for (const size_t length : {size_t{231}, size_t{232}, size_t{255}}) {
    const std::string path = folder / std::string(length, static_cast<char>('a' + length % 26));
    BOOST_TEST(test::in_child([&] {
      io::AtomicFile file(path);
      ::_exit(0);
      return true;
    }));
    BOOST_TEST(folder.entries() == 1u);
    io::write_file(path, "text");
    BOOST_TEST(folder.entries() == 1u);  // without what the child has left
    BOOST_TEST(std::filesystem::remove(path));
  }
  BRAID_CHECK_FAILS(io::AtomicFile(folder / std::string(256, 'a')), ErrorKind::output, "File name too long");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_replaced_keeps_its_rights) {
  TempFolder folder;
  folder.write("a.txt", "old");
  for (const unsigned rights : {0600u, 0640u, 0666u, 0444u, 0400u}) {
    std::filesystem::permissions(folder / "a.txt", std::filesystem::perms(rights));
    io::write_file(folder / "a.txt", "new");
    BOOST_TEST(static_cast<unsigned>(std::filesystem::status(folder / "a.txt").permissions()) == rights);
  }
}

BOOST_AUTO_TEST_CASE(says_where_it_cannot_write) {
  TempFolder folder;
  BRAID_CHECK_FAILS(io::AtomicFile(folder / "no/such/a.txt"), ErrorKind::output, "no/such/a.txt", "No such file");
  BRAID_CHECK_FAILS(io::AtomicFile(folder.path.string()), ErrorKind::output, "it is a folder");
  BRAID_CHECK_FAILS(io::sync_folder(folder / "none"), ErrorKind::output, "none", "No such file");
}

BOOST_AUTO_TEST_CASE(writes_through_a_symbolic_link) {
  TempFolder folder;
  folder.write("real.txt", "old");
  std::filesystem::create_symlink("real.txt", folder / "link.txt");
  io::write_file(folder / "link.txt", "new");
  BOOST_TEST(std::filesystem::is_symlink(folder / "link.txt"));
  BOOST_TEST(folder.read("real.txt") == "new");

  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("../later.txt", folder / "sub/early.txt");  // what it points to is not there yet
  std::filesystem::create_symlink("sub/early.txt", folder / "first.txt");
  io::write_file(folder / "first.txt", "now");
  BOOST_TEST(std::filesystem::is_symlink(folder / "first.txt"));
  BOOST_TEST(std::filesystem::is_symlink(folder / "sub/early.txt"));
  BOOST_TEST(folder.read("later.txt") == "now");

  const std::filesystem::path real = std::filesystem::canonical(folder.path);
  const auto name = [](int i) { return i == 0 ? "end.txt" : "hop" + std::to_string(i); };
  for (int i = 1; i <= 40; ++i)
    std::filesystem::create_symlink(name(i - 1), real / name(i));  // as many as Linux follows
  io::write_file(real / name(40), "far");
  BOOST_TEST(std::filesystem::is_symlink(real / name(1)));
  BOOST_TEST(folder.read("end.txt") == "far");
}

// As with >> FILE in a shell and -o /dev/stdout: what was written before stays, what comes later follows.
BOOST_AUTO_TEST_CASE(an_open_file_is_written_where_it_stands) {
  TempFolder folder;
  const int fd = ::open((folder / "a.txt").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  BOOST_REQUIRE(fd >= 0);
  const std::string name = "/dev/fd/" + std::to_string(fd);
  std::filesystem::create_symlink(name, folder / "link");
  BOOST_TEST(io::write_fully(fd, "first ", 6, -1) == 6);
  io::write_file(name, "second ");
  io::write_file(folder / "link", "third ");
  BOOST_TEST(io::write_fully(fd, "last", 4, -1) == 4);
  BOOST_TEST(test::in_child([&] {  // its number may be 0
    if (::dup2(fd, 0) != 0) return false;
    io::write_file("/dev/fd/0", ", but one");
    return true;
  }));
  BOOST_TEST(folder.read("a.txt") == "first second third last, but one");
  BOOST_TEST(std::filesystem::remove(folder / "a.txt"));
  io::write_file(name, "without a name");
  BOOST_TEST(folder.entries() == 1u);
  ::close(fd);
}

// Before the work, not after it.
BOOST_AUTO_TEST_CASE(an_open_file_that_cannot_be_written_is_refused) {
  TempFolder folder;
  folder.write("a.txt", "old");
  for (const std::string& path : {folder / "a.txt", folder.path.string()}) {
    for (const int flags : {O_RDONLY, O_PATH}) {
      const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
      BOOST_REQUIRE(fd >= 0);
      const std::string name = "/dev/fd/" + std::to_string(fd);
      BRAID_CHECK_FAILS(io::AtomicFile{name}, ErrorKind::output, "cannot write " + name + ": Bad file descriptor",
                        "open the file for writing");
      ::close(fd);
    }
  }
  BOOST_TEST(folder.read("a.txt") == "old");
}

BOOST_AUTO_TEST_CASE(links_in_a_circle_are_an_error) {
  TempFolder folder;
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  BRAID_CHECK_FAILS(io::write_file(folder / "a", "x"), ErrorKind::output, folder / "a",
                    "Too many levels of symbolic links");
}

// A file that could not be written is closed once: its number may belong to another one by then.
BOOST_AUTO_TEST_CASE(a_failure_closes_no_file_of_others) {
  TempFolder folder;
  BOOST_TEST(test::in_child([&] {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (::dup2(null, 0) != 0) return false;
    FileSizeLimit limit(4096);
    try {
      io::write_file(folder / "a.bin", std::string(5000, 'x'));
    } catch (const Error&) {
      return ::fcntl(0, F_GETFD) >= 0;
    }
    return false;
  }));
}

BOOST_AUTO_TEST_CASE(pipes_and_devices_stay_what_they_are) {
  TempFolder folder;
  const std::string pipe = folder / "pipe";
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  { const io::AtomicFile unused(pipe); }  // waits for no reader
  std::string read;
  std::thread reader([&] {
    std::ifstream in(pipe);
    read.assign(std::istreambuf_iterator<char>(in), {});
  });
  io::AtomicFile file(pipe);
  const std::string large(300'000, 'x');
  file.write("begin");
  file.write(large);
  BRAID_CHECK_FAILS(file.write_at(0, "B", 1), ErrorKind::output, "cannot write " + pipe, "no file");
  file.commit();
  reader.join();
  BOOST_TEST((read == "begin" + large));
  BOOST_TEST(std::filesystem::is_fifo(pipe));
  BOOST_TEST(folder.entries() == 1u);

  std::filesystem::create_symlink("/dev/full", folder / "full");
  BRAID_CHECK_FAILS(io::write_file(folder / "full", "text"), ErrorKind::output, "full after 0 bytes: No space left");
  io::write_file("/dev/null", "text");
  BOOST_TEST(std::filesystem::is_character_file("/dev/null"));
}

BOOST_AUTO_TEST_SUITE_END()
