// A server of a tiny random model in this process.
#pragma once
#include <limits>
#include <string>

#include "apps/serve/http/server.h"
#include "tests/apps/generate/byte_model.h"
#include "tests/apps/serve/client.h"

namespace braid::test {

// The byte tokenizer and a model of random weights with sequences of 64 or another number.
struct TestServer {
  // bad_token: an id whose embedding is NaN; -1: none.
  explicit TestServer(apps::serve::ServerOptions options = {}, apps::serve::ServiceOptions service_options = {},
                      int64_t bad_token = -1, const std::string& context = "64")
      : model(make_model(bad_token, context)),
        service(*model, tokenizer, with_defaults(std::move(service_options))),
        server(service, std::move(options)) {}

  static std::unique_ptr<models::LanguageModel> make_model(int64_t bad_token, const std::string& context) {
    auto model = models::as_language_model(byte_model("258", 5, context));
    for (nn::NamedTensor& p : nn::parameters(*model))
      if (bad_token >= 0 && p.name == "tok_embeddings.weight")
        p.value.detach().sliced(0, bad_token, bad_token + 1).fill(std::numeric_limits<double>::quiet_NaN());
    return model;
  }
  static apps::serve::ServiceOptions with_defaults(apps::serve::ServiceOptions options) {
    if (options.name.empty()) options.name = "tiny";
    if (options.engine.queue == 0) options.engine.queue = 64;
    options.ends = {256};
    if (options.chat.turn.empty()) options.chat = models::text::ChatTemplate::parse("simple");
    return options;
  }
  Answer post(const std::string& path, const std::string& body) { return Client(server.port()).post(path, body); }
  int port() const { return server.port(); }
  // Waits until nothing is computed any more.
  bool idle() {
    for (int i = 0; i < 3000; ++i) {
      const models::EngineLoad load = service.load();
      if (load.running == 0 && load.waiting == 0) return true;
      ::usleep(10000);
    }
    return false;
  }
  // The value of a line of /metrics.
  int64_t metric(const std::string& name) {
    const std::string text = "\n" + Client(port()).get("/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + name.size() + 2));
  }

  models::text::ByteTokenizer tokenizer;
  std::unique_ptr<models::LanguageModel> model;
  apps::serve::Service service;
  apps::serve::Server server;
};

}  // namespace braid::test
