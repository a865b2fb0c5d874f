#include "tests/soak/server_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>

#include "braid/models/folders/pretrained.h"
#include "tests/apps/generate/byte_model.h"
#include "tests/apps/serve/client.h"

namespace braid::soak {
namespace {

constexpr int kSequences = 16;

// A line of text with its end; "" at the end of the file.
std::string line_of(std::FILE* file) {
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) {
    text += static_cast<char>(c);
    if (c == '\n') break;
  }
  return text;
}

}  // namespace

ServerProcess::ServerProcess(const std::string& program, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const models::text::ByteTokenizer tokenizer;
  models::save_model(*test::byte_model(), &tokenizer, folder);
  std::vector<std::string> words = {program,      "serve",       folder.string(),
                                    "--port",     "0",           "--threads",
                                    "1",          "--sequences", std::to_string(kSequences),
                                    "--requests", "1200"};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO), ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]), ::close(ends[1]);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output_ = ::fdopen(ends[0], "r");
  const std::string before_port = "serving http://127.0.0.1:";
  std::string all;
  for (std::string line; port_ == 0 && !(line = line_of(output_)).empty(); all += line)
    if (const size_t at = line.find(before_port); at != std::string::npos)
      port_ = std::stoi(line.substr(at + before_port.size()));
  if (port_ == 0) throw std::runtime_error("the server did not start: " + all);
  reader_ = std::thread([this] { read_output(); });
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  if (reader_.joinable()) reader_.join();
  if (output_) std::fclose(output_);
}

void ServerProcess::read_output() {
  for (std::string line; !(line = line_of(output_)).empty();)
    if (line.find("stop") == std::string::npos) errors_.push_back(line);
}

int64_t ServerProcess::memory_kib() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  return -1;
}

int64_t ServerProcess::descriptors() const {
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/" + std::to_string(pid_) + "/fd", error);
  return error ? -1 : std::distance(begin(open), end(open));
}

int64_t ServerProcess::metric(const std::string& name) const {
  const std::string text = "\n" + test::Client(port_).get("/metrics").body;
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + name.size() + 2));
}

bool ServerProcess::settle() const {
  for (int i = 0; i < 300; ++i) {
    if (metric("braid_requests_processing") == 0 && metric("braid_requests_deferred") == 0 &&
        metric("braid_http_connections") == 1)
      return true;
    ::usleep(100000);
  }
  return false;
}

// The cache keeps at most 4 ended texts for each sequence, for their prefixes. Texts that begin with tokens of their
// own replace them all: the first half of these those that remain of the tests, the second half what a text of the
// tests may have in common with the first.
int64_t ServerProcess::used_blocks() const {
  test::Client client(port_);
  for (int token = 128; token < 256; ++token) {
    const test::Answer answer =
        client.post("/v1/completions", "{\"prompt\": [" + std::to_string(token) + ", 1], \"max_tokens\": 1}");
    if (answer.status != 200) throw std::runtime_error("no answer: " + answer.body);
  }
  static_assert(128 / 2 >= 4 * kSequences);
  return metric("braid_cache_blocks") - metric("braid_cache_free_blocks");
}

int ServerProcess::stop() {
  ::kill(pid_, SIGTERM);
  reader_.join();
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace braid::soak
