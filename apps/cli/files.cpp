#include "apps/cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {
namespace fs = std::filesystem;
namespace {

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

[[noreturn]] void cannot_write(const fs::path& file) {
  fail(ErrorKind::output, "cannot write " + file.string() + ": " + system_message());
}

}  // namespace

std::string system_message() { return std::strerror(errno); }

std::string read_text(const fs::path& file, int64_t limit) {
  const auto cannot = [&](const std::string& why) {
    fail(ErrorKind::input, "cannot read " + file.string() + ": " + why);
  };
  const Descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (in.value < 0) cannot(system_message());
  struct stat info;
  if (::fstat(in.value, &info) != 0) cannot(system_message());
  if (S_ISDIR(info.st_mode)) cannot("expected a file, found a folder");
  // A device may never end.
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode)) cannot("expected a file, found a device or socket");
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(in.value, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot(system_message());
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (static_cast<int64_t>(text.size()) > limit)
      cannot("expected at most " + std::to_string(limit) + " bytes, found more");
  }
}

void write_all(int descriptor, std::string_view text, const fs::path& file) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot_write(file);
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (fs::is_directory(folder)) return;
  std::error_code ignored;
  if (fs::exists(folder, ignored))
    fail(ErrorKind::setting,
         "cannot use " + folder.string() + ": expected a folder, found a file; choose another name");
  fail(ErrorKind::output, "cannot create folder " + folder.string() + ": " + error.message());
}

void write_text(const fs::path& file, std::string_view text) {
  if (file.has_parent_path()) make_folder(file.parent_path());
  io::write_file(file.string(), text);
}

}  // namespace braid::apps
