// Jobs of several processes for their tests: a shell command while it runs, a data set, braid train under mpirun.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tests/support/places.h"
#include "tests/support/temp_folder.h"

namespace braid::test::jobs {

namespace fs = std::filesystem;

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A running shell command.
class Shell {
 public:
  Shell(const std::string& command, const fs::path& output) : output_(output) {
    pid_ = ::fork();
    if (pid_ == 0) {
      std::string line = "exec " + command + " >" + output.string() + " 2>&1 </dev/null";
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
  }
  Shell(const Shell&) = delete;
  ~Shell() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string output() const { return read_file(output_); }

 private:
  pid_t pid_;
  fs::path output_;
};

// One data set for all tests.
struct World {
  TempFolder folder;
  int runs = 0;
  World() {
    std::mt19937 random(5);
    for (int i = 0; i < 30; ++i) {
      std::ostringstream text;
      for (int j = 0; j < 100; ++j) text << random() % 100 << " ";
      folder.write("in/" + std::to_string(i) + ".txt", text.str());
    }
    std::ostringstream prepare;
    prepare << braid_program() << " prepare " << (folder / "in") << " --val-fraction 0.2 -o " << data();
    Shell made(prepare.str(), folder.path / "prepared.txt");
    if (made.wait() != 0) throw std::runtime_error(made.output());
  }
  std::string data() const { return folder / "data"; }
  fs::path fresh() { return folder.path / ("run-" + std::to_string(runs++)); }
};
inline World& world() {
  static World instance;
  return instance;
}

inline std::string train(const fs::path& out, const std::string& more) {
  std::ostringstream line;
  line << braid_program() << " train run.out=" << out.string() << " data.path=" << world().data()
       << " model.dim=24 model.n_layer=2 model.n_head=4 model.block_size=32 train.batch_size=4 schedule.warmup=2"
          " eval.interval=5 eval.samples=8 log.interval=1 guard.spike=0 train.dtype=f64 run.threads=1 train.steps=10"
          " checkpoint.interval=0 "
       << more;
  return line.str();
}
inline std::string mpirun(int ranks) {
  std::ostringstream line;
  line << BRAID_MPIRUN << " --oversubscribe -np " << ranks << " ";
  return line.str();
}

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

struct Outcome {
  int code;
  std::string output;
};
inline Outcome run(const std::string& command) {
  Shell shell(command, world().folder.path / "output.txt");
  int code = shell.wait();
  return {code, shell.output()};
}

inline bool says(const Outcome& o, int code, const std::string& words) {
  bool ok = o.code == code && o.output.find(words) != std::string::npos;
  if (!ok) BOOST_TEST_MESSAGE("exit " << o.code << "\n" << o.output << "\nwanted " << code << ": " << words);
  return ok;
}

}  // namespace braid::test::jobs
