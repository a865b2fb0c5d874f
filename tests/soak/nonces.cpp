// Requests at the same time, each with a nonce, some of which are aborted: no answer has anything of another one, and
// each has the bits that it gets alone.
#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include "tests/apps/serve/client.h"
#include "tests/soak/phases.h"

namespace braid::soak {
namespace {

using nlohmann::json;
using test::Answer;
using test::Client;

const std::string kNonce = "nonce ";

std::string prompt_of(int64_t number) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%08llx", static_cast<unsigned long long>(number));
  const std::string shared = "the same beginning of all texts ";  // two blocks of the cache
  return (number % 2 == 0 ? shared : "") + kNonce + digits + " ";
}

// Greedy or drawn by a seed, whole or streamed: all of it follows from the number.
std::string request_of(int64_t number, bool stream) {
  json body = {{"prompt", prompt_of(number)},
               {"max_tokens", 4 + number % 5},
               {"ignore_eos", true},
               {"echo", true},
               {"logprobs", 1},
               {"stream", stream}};
  body["temperature"] = number % 3 == 0 ? 0.9 : 0.0;
  body["seed"] = number;
  return Client::post_text("/v1/completions", body.dump());
}

struct Text {
  std::string text;
  std::string scores;  // as their digits
};

void append(const json& choice, Text& to) {
  to.text += choice.at("text").get<std::string>();
  if (!choice.at("logprobs").is_object()) return;
  for (const json& score : choice.at("logprobs").at("token_logprobs")) to.scores += score.dump() + " ";
}

Text text_of(const Answer& answer, bool stream) {
  Text result;
  if (!stream) {
    append(answer.json().at("choices").at(0), result);
    return result;
  }
  for (size_t at = 0, end; (end = answer.body.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const std::string data = answer.body.substr(at + 6, end - at - 6);
    if (data == "[DONE]") return result;
    const json event = json::parse(data);
    if (!event.at("choices").empty()) append(event.at("choices").at(0), result);
  }
  throw std::runtime_error("a stream without its end");
}

// A client that asks again where the server had no room, or where it has closed the connection between two requests.
class Asking {
 public:
  Asking(int port, Report& report) : port_(port), report_(report) {}

  Text ask(int64_t number, bool stream) {
    for (;;) {
      connect();
      client_->send(request_of(number, stream));
      const Answer answer = client_->answer();
      if (answer.status == 200) return text_of(answer, stream);
      if (answer.status != 503) throw std::runtime_error("status " + std::to_string(answer.status) + " " + answer.body);
      report_.add("asked again: the queue was full");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void abort(int64_t number, Random& random) {
    connect();
    client_->send(request_of(number, true));
    std::this_thread::sleep_for(std::chrono::microseconds(below(random, 2000)));
    client_->reset();
    client_.reset();
    report_.add("aborted beside them");
  }

 private:
  void connect() {
    if (!client_) client_ = std::make_unique<Client>(port_);
  }
  int port_;
  Report& report_;
  std::unique_ptr<Client> client_;
};

uint64_t digest(const Text& text) { return std::hash<std::string>()(text.text + '\n' + text.scores); }

}  // namespace

void requests_with_nonces(const Plan& plan, Report& report) {
  constexpr int kClients = 64;
  std::vector<uint64_t> digests(static_cast<size_t>(plan.count));
  std::array<std::unique_ptr<Asking>, kClients> clients;
  for (auto& client : clients) client = std::make_unique<Asking>(plan.port, report);
  std::atomic<size_t> arrived = 0;
  in_threads(kClients, plan.work(), report, [&](Random& random, int64_t number) -> int64_t {
    thread_local Asking* own = nullptr;
    if (number >= plan.count) return 1;
    if (!own) own = clients[arrived++].get();
    if (below(random, 5) == 0) own->abort(number, random);
    const Text text = own->ask(number, number % 4 == 0);
    const std::string prompt = prompt_of(number);
    if (!text.text.starts_with(prompt) || text.text.find(kNonce, prompt.size()) != std::string::npos)
      report.fault("foreign tokens in the answer to '" + prompt + "': " + text.text);
    digests[static_cast<size_t>(number)] = digest(text);
    report.add("answers beside others");
    return 1;
  });
  if (report.faults() > 0) return;
  // The same again, one at a time and never streamed.
  Asking alone(plan.port, report);
  std::set<std::string> continuations;
  for (int64_t number = 0; number < plan.count; ++number) {
    const Text text = alone.ask(number, false);
    continuations.insert(text.text.substr(prompt_of(number).size()));
    if (digest(text) != digests[static_cast<size_t>(number)])
      report.fault("alone '" + prompt_of(number) + "' continues otherwise: " + text.text);
  }
  report.add("answers compared with those alone", plan.count);
  report.add("different continuations", std::ssize(continuations));
}

}  // namespace braid::soak
