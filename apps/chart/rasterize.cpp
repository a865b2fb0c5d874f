#include "apps/chart/rasterize.h"

#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

extern char** environ;

namespace braid::apps {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// A file without a name.
File temporary_file() {
  File file(std::tmpfile());
  check(file != nullptr, ErrorKind::output, [] { return str("cannot make a temporary file: ", std::strerror(errno)); });
  return file;
}

std::string content(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 1 << 16> block;
  for (size_t n; (n = std::fread(block.data(), 1, block.size(), file)) > 0;) text.append(block.data(), n);
  return text;
}

}  // namespace

std::string png_of(const std::string& svg) {
  const File in = temporary_file(), out = temporary_file(), words = temporary_file();
  check(std::fwrite(svg.data(), 1, svg.size(), in.get()) == svg.size() && std::fflush(in.get()) == 0, ErrorKind::output,
        [] { return str("cannot write a temporary file: ", std::strerror(errno)); });
  std::rewind(in.get());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(in.get()), 0);
  posix_spawn_file_actions_adddup2(&files, fileno(out.get()), 1);
  posix_spawn_file_actions_adddup2(&files, fileno(words.get()), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  unblock_signals(attributes);
  std::string program = "rsvg-convert", zoom = "--zoom=2", format = "--format=png";
  char* arguments[] = {program.data(), zoom.data(), format.data(), nullptr};
  pid_t process = 0;
  const int failed = posix_spawnp(&process, program.c_str(), &files, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  check(failed == 0, ErrorKind::setting, [&] {
    return str("cannot start rsvg-convert, which makes a .png: ", std::strerror(failed),
               "; install it (Debian: librsvg2-bin), or write a .svg");
  });
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  std::string png = content(out.get());
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0 && png.starts_with("\x89PNG"), ErrorKind::output,
        [&] { return "rsvg-convert made no image: " + preview(trim(content(words.get())), 300) + "; write a .svg"; });
  return png;
}

}  // namespace braid::apps
