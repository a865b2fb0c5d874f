// Clients that leave at any moment: within the head, within the body, while they wait, within the stream.
#include <chrono>
#include <thread>

#include "tests/apps/serve/client.h"
#include "tests/soak/phases.h"

namespace braid::soak {
namespace {

using test::Client;

std::string some_request(Random& random) {
  static const std::vector<std::string> bodies = {
      R"({"prompt": "leaving", "max_tokens": 50, "ignore_eos": true, "stream": true})",
      R"({"prompt": ["a", "b", "c"], "n": 2, "max_tokens": 40, "ignore_eos": true})",
      R"({"prompt": "the same beginning of all texts, of clients that leave", "max_tokens": 8, "echo": true,
          "logprobs": 5, "stream": true, "ignore_eos": true})"};
  return Client::post_text("/v1/completions", bodies[below(random, bodies.size())]);
}

int64_t leave(const Plan& plan, Random& random, Report& report) {
  const auto pause = [&] { std::this_thread::sleep_for(std::chrono::microseconds(below(random, 4000))); };
  Client client(plan.port, 0, some_address(random));
  if (!client.connected()) {
    report.fault("no connection");
    return 1;
  }
  const std::string request = some_request(random);
  const size_t head = request.find("\r\n\r\n") + 4;
  switch (below(random, 5)) {
    case 0:
      client.send(request.substr(0, 1 + below(random, head - 1)));
      report.add("left within the head");
      break;
    case 1:
      client.send(request.substr(0, head + below(random, request.size() - head)));
      report.add("left within the body");
      break;
    case 2:
      client.send(request);
      pause();
      report.add("left before the answer, or within it");
      break;
    case 3: {
      client.send(request);
      client.receive();
      client.set_patience(5);  // nothing follows the last piece
      for (uint64_t more = below(random, 12); more > 0 && client.receive(); --more) continue;
      report.add("left after the first bytes of the answer");
      break;
    }
    default:
      client.send(request + some_request(random) + some_request(random));
      pause();
      report.add("left with requests behind the first one");
  }
  if (below(random, 2) == 0) client.reset();
  return 1;
}

}  // namespace

void aborted_requests(const Plan& plan, Report& report) {
  in_threads(16, plan.work(), report, [&](Random& random, int64_t) { return leave(plan, random, report); });
}

}  // namespace braid::soak
