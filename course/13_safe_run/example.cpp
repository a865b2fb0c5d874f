// What a power loss can leave of a file that is being replaced, call by call; then Braid's AtomicFile on a real folder.
#include <braid/tensor/io/atomic_file.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "course/13_safe_run/disk.h"
using course::Disk;

static void show(const Disk& disk, const char* after) {
  std::set<std::string> found;
  for (const Disk::State& state : disk.after_power_loss()) found.insert(state.disk.read("weights"));
  std::printf("%-24s", after);
  for (const std::string& bytes : found)
    std::printf(" %s", bytes.empty() ? "(empty)" : bytes[0] == 0 ? "(zeros)" : bytes.c_str());
  std::printf("\n");
}

static void replace(bool sync) {
  Disk disk;
  disk.create("weights"), disk.write("weights", "old"), disk.sync("weights"), disk.sync_folder();
  std::printf("power lost after         weights may be\n");
  disk.create("tmp"), disk.write("tmp", "new!");
  show(disk, "write(tmp)");
  if (sync) {
    disk.sync("tmp");
    show(disk, "sync(tmp)");
  }
  disk.rename("tmp", "weights");
  show(disk, "rename(tmp, weights)");
  disk.sync_folder();
  show(disk, "sync_folder()");
}

int main() {
  replace(false);
  replace(true);

  char folder[] = "/tmp/course-XXXXXX";
  if (!::mkdtemp(folder)) return 1;
  const std::string path = std::string(folder) + "/weights";
  const auto read = [&] {
    std::string bytes;
    std::getline(std::ifstream(path), bytes);
    return bytes;
  };
  braid::io::write_file(path, "old");
  braid::io::AtomicFile file(path);
  file.write("new!");
  std::printf("AtomicFile before commit(): %s\n", read().c_str());
  file.commit();  // sync, rename, sync of the folder
  std::printf("AtomicFile after commit():  %s\n", read().c_str());
  std::filesystem::remove_all(folder);
}
