// Helpers of the tests of apps/: a scratch folder, and the real program.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tensor/error.h"

namespace braid::test {

// A folder of its own under the system's temporary folder, removed at the end.
class Scratch {
 public:
  Scratch() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("braid-apps-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

inline std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Outcome {
  int code;            // exit code, or -1 after a signal
  std::string output;  // stdout and stderr together
};

// The real program, run by a shell.
inline Outcome run(const std::string& arguments) {
  std::FILE* pipe = ::popen((std::string(BRAID_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  std::string output;
  char buffer[4096];
  for (size_t count; pipe && (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, count);
  const int status = pipe ? ::pclose(pipe) : -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

// For BOOST_CHECK_EXCEPTION: an Error of this kind whose message contains the words.
inline auto says(ErrorKind kind, std::string words) {
  return [kind, words](const Error& error) {
    const bool ok = error.kind() == kind && std::string(error.what()).find(words) != std::string::npos;
    if (!ok) BOOST_TEST_MESSAGE("got kind " << int(error.kind()) << ": " << error.what() << "\nwanted: " << words);
    return ok;
  };
}

}  // namespace braid::test
