// braid serve as another program, with a tiny model of random weights, and what the system says about it.
#pragma once
#include <sys/types.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace braid::soak {

class ServerProcess {
 public:
  // Writes the model to `folder` and starts `program` on a free port. std::runtime_error where it does not serve.
  ServerProcess(const std::string& program, const std::filesystem::path& folder);
  ~ServerProcess();  // kills it
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  int port() const { return port_; }
  int64_t memory_kib() const;  // resident
  int64_t descriptors() const;
  // The value of a line of /metrics; -1 where there is none.
  int64_t metric(const std::string& name) const;
  // Waits until nothing is computed and no connection is open but the one that asks; false: that takes too long.
  bool settle() const;
  // Blocks of the cache that are in use after the same requests, which replace all that it keeps of earlier texts.
  int64_t used_blocks() const;
  // SIGTERM. The exit code, or -N after signal N.
  int stop();
  const std::vector<std::string>& errors() const { return errors_; }  // lines that it wrote, once stopped

 private:
  void read_output();
  pid_t pid_ = -1;
  int port_ = 0;
  std::FILE* output_ = nullptr;
  std::vector<std::string> errors_;
  std::thread reader_;
};

}  // namespace braid::soak
