// Helpers of the tests of apps/: a scratch folder, and the real program.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/places.h"
#include "tests/support/temp_folder.h"

namespace braid::test {

// A folder whose files are paths.
struct Scratch : TempFolder {
  std::filesystem::path operator/(const std::string& name) const { return path / name; }
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
inline bool has(const Outcome& result, const std::string& words) {
  return result.output.find(words) != std::string::npos;
}

inline void has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    BOOST_TEST(text.find(part) != std::string::npos, "'" + part + "' is not in:\n" + text);
}
inline size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The real program, run by a shell. `before`: shell words in front of it, such as "ulimit -f 100;".
inline Outcome run(const std::string& arguments, const std::string& before = "") {
  std::FILE* pipe = ::popen((before + " " + braid_program() + " " + arguments + " 2>&1").c_str(), "r");
  std::string output;
  char buffer[4096];
  for (size_t count; pipe && (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, count);
  const int status = pipe ? ::pclose(pipe) : -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

// The real program while it runs, to send it signals. Killed when the object dies.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::string program = braid_program();
    std::vector<char*> pointers = {program.data()};
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO), ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]), ::close(ends[1]);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    if (output_) std::fclose(output_);
  }

  // The next line of its output with its end; "" when it has closed the output.
  std::string line() {
    std::string text;
    for (int c; (c = std::fgetc(output_)) != EOF;) {
      text += static_cast<char>(c);
      if (c == '\n') break;
    }
    return text;
  }
  pid_t id() const { return pid_; }
  void signal(int number) { ::kill(pid_, number); }
  void close_output() { std::fclose(std::exchange(output_, nullptr)); }  // of this end: the reader has gone
  // Reads the rest of the output and waits for the end.
  Outcome wait() {
    std::string rest;
    for (std::string text; output_ && !(text = line()).empty();) rest += text;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, rest};
  }

 private:
  pid_t pid_ = -1;
  std::FILE* output_ = nullptr;
};

}  // namespace braid::test
