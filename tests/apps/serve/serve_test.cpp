// braid serve as the real program.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <sstream>

#include "braid/models/folders/pretrained.h"
#include "tests/apps/serve/test_server.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(serve_command)

namespace {

struct Folder {
  Folder() {
    std::filesystem::create_directories(scratch / "tiny");
    const models::text::ByteTokenizer tokenizer;
    models::save_model(*byte_model(), &tokenizer, scratch / "tiny");
    test::write(scratch / "key", "secret\n");
    ::chmod((scratch / "key").c_str(), 0600);
  }
  Scratch scratch;
  std::string model = (scratch / "tiny").string(), key = (scratch / "key").string();
};
const Folder& folder() {
  static const Folder instance;
  return instance;
}

// Starts the program on a free port and waits until it serves.
struct Running {
  explicit Running(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"serve", folder().model, "--port", "0", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    process = std::make_unique<Process>(arguments);
    for (std::string line; !(line = process->line()).empty();) {
      const size_t at = line.find("serving http://127.0.0.1:");
      if (at == std::string::npos) continue;
      port = std::stoi(line.substr(at + 25));
      break;
    }
  }
  std::unique_ptr<Process> process;
  int port = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(serves_until_a_signal) {
  const std::string port_file = (folder().scratch / "port").string();
  Running server({"--port-file", port_file, "--log"});
  BOOST_REQUIRE(server.port > 0);
  BOOST_TEST(slurp(port_file) == std::to_string(server.port) + "\n");
  Client client(server.port);
  BOOST_TEST(client.get("/v1/models").json()["data"][0]["id"] == "tiny");
  BOOST_TEST(client.post("/v1/completions", R"({"prompt": "MARKER", "max_tokens": 3})").status == 200);
  // The model's files are not read again.
  std::filesystem::rename(folder().model, folder().model + "-moved");
  BOOST_TEST(client.post("/v1/completions", R"({"prompt": "x", "max_tokens": 3})").status == 200);
  std::filesystem::rename(folder().model + "-moved", folder().model);
  server.process->signal(SIGTERM);
  const Outcome end = server.process->wait();
  BOOST_TEST(end.code == 0);
  BOOST_TEST(end.output.find("/v1/completions 200") != std::string::npos, end.output);
  BOOST_TEST(end.output.find("stopped\n") != std::string::npos, end.output);
  BOOST_TEST(end.output.find("MARKER") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_log_for_programs) {
  Running server({"--log", "json"});
  Client client(server.port);
  const std::string body = R"({"prompt": "MARKER", "max_tokens": 3, "ignore_eos": true, "stream": )";
  for (const char* stream : {"false}", "true}"})
    BOOST_TEST(client.post("/v1/completions", body + stream).status == 200);
  BOOST_TEST(client.get("/MARKER").status == 404);
  server.process->signal(SIGTERM);
  const Outcome end = server.process->wait();
  BOOST_TEST(end.output.find("MARKER") == std::string::npos);
  std::vector<nlohmann::json> entries;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("{")) entries.push_back(nlohmann::json::parse(line));
  BOOST_REQUIRE(entries.size() == 3u);
  for (size_t i = 0; i < 2; ++i) {
    BOOST_TEST(entries[i]["route"] == "/v1/completions");
    BOOST_TEST(entries[i]["status"] == 200);
    BOOST_TEST(entries[i]["client"] == "127.0.0.1");
    BOOST_TEST(entries[i]["prompt_tokens"] == 6);
    BOOST_TEST(entries[i]["completion_tokens"] == 3);
    BOOST_TEST(entries[i]["seconds"].get<double>() > 0);
    BOOST_TEST(entries[i]["time"].get<std::string>().size() == 24u);
  }
  BOOST_TEST(entries[2]["status"] == 404);
  BOOST_TEST(entries[2]["route"] == "other");
  BOOST_TEST(entries[2]["prompt_tokens"].is_null());
}

BOOST_AUTO_TEST_CASE(a_second_signal_ends_at_once) {
  Running server({"--grace", "3600"});
  Client stuck(server.port, 4096);  // reads nothing, so that its answer does not end
  std::string many;
  for (int i = 0; i < 60; ++i)
    many += Client::post_text("/v1/completions", R"({"prompt": "x", "max_tokens": 60, "stream": true, "logprobs": 20,
                                                     "ignore_eos": true})");
  stuck.send(many);
  std::string tokens = "none";
  for (std::string now; now != tokens; ::usleep(300000)) {  // until the buffers of the system are full
    tokens = std::exchange(now, Client(server.port).get("/metrics").body);
    const auto count = [](const std::string& text) { return text.substr(0, text.find("braid_passes_total")); };
    tokens = count(tokens), now = count(now);
  }
  server.process->signal(SIGTERM);
  while (server.process->line().find("stopping") == std::string::npos) continue;
  ::usleep(100000);
  server.process->signal(SIGTERM);
  BOOST_TEST(server.process->wait().code == -1);  // by the signal
}

BOOST_AUTO_TEST_CASE(the_key_is_in_no_output) {
  Running server({"--key-file", folder().key, "--log"});
  BOOST_TEST(Client(server.port).get("/v1/models").status == 401);
  BOOST_TEST(Client(server.port).get("/v1/models", "Authorization: Bearer secret\r\n").status == 200);
  server.process->signal(SIGINT);
  const Outcome end = server.process->wait();
  BOOST_TEST(end.code == 0);
  BOOST_TEST(end.output.find("secret") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(bad_use_is_said_in_one_line) {
  const auto fails = [](const std::string& arguments, int code, const std::string& words,
                        const std::string& before = "") {
    const Outcome result = run("serve " + folder().model + " " + arguments, before);
    BOOST_TEST(result.code == code, result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
  };
  fails("--host 0.0.0.0", 2, "can be reached by others");
  fails("--host ::", 2, "can be reached by others");
  fails("--host nowhere", 2, "can be reached by others");
  ::chmod(folder().key.c_str(), 0644);
  fails("--key-file " + folder().key, 2, "others may use the key file");
  ::chmod(folder().key.c_str(), 0600);
  fails("--chat nothing", 2, "bad chat template");
  fails("--allow-origin page.example", 2, "expected the origin of a page, such as http://localhost:3000");
  fails("--log=xml", 2, "bad value for --log: expected one of text, json, found 'xml'");
  fails("--port 99999", 2, "--port");
  fails("--port 0 --positions 3000000000000", 2, "--positions");
  TestServer taken;
  const std::string port = " --port " + std::to_string(taken.port());
  fails(port, 2, "another program has this port");
  fails("--port-file /nowhere/port --port 0", 4, "/nowhere/port");
  const std::string no_model = (folder().scratch / "none").string();
  const Outcome none = run("serve --port 0 " + no_model);
  BOOST_TEST(none.code == 3, none.output);
  const Outcome before = run("serve " + no_model + port);  // said before the model is looked for
  BOOST_TEST(before.code == 2, before.output);
  BOOST_TEST(before.output.find("another program has this port") != std::string::npos, before.output);
}

BOOST_AUTO_TEST_SUITE_END()
