// braid serve: a model behind OpenAI's HTTP routes.
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "apps/cli/commands.h"
#include "apps/cli/loaded_model.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/cli/text_model.h"
#include "apps/serve/beginnings.h"
#include "apps/serve/http/server.h"
#include "braid/models/cost/size.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"

namespace braid::apps {
namespace {

using namespace serve;
using std::chrono::milliseconds;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

// The key of --key-file or of the environment; a server that others can reach must have one.
std::string key_of(const Arguments& arguments) {
  const char* variable = std::getenv("BRAID_API_KEY");
  std::string key = arguments.has("key-file") ? read_key_file(arguments.get("key-file")) : variable ? variable : "";
  const std::string host = arguments.get("host");
  check(!key.empty() || host == "localhost" || is_loopback(host), ErrorKind::setting, [&] {
    return "--host " + host +
           " can be reached by others: expected a key that requests must have; give --key-file FILE " +
           "or set BRAID_API_KEY, or leave --host out to serve this machine alone";
  });
  return key;
}

ServerOptions server_options(const Arguments& arguments) {
  ServerOptions options;
  options.access.key = key_of(arguments);
  for (const std::string& name : arguments.list("allow-host")) options.access.hosts.push_back(lower(name));
  for (const std::string& url : arguments.list("allow-origin")) {
    options.access.origins.push_back(origin_of(url));
    check(!options.access.origins.back().empty(), ErrorKind::setting, [&] {
      return "bad value of --allow-origin: expected the origin of a page, such as http://localhost:3000, found " +
             preview(url);
    });
  }
  options.requests = arguments.get_int("requests");
  if (arguments.has("log")) options.log = arguments.get("log") == "json" ? LogForm::json : LogForm::text;
  return options;
}

// As many open files as the connections need, where the system allows it. With fewer the server waits for free ones.
void raise_file_limit(int64_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto needed = static_cast<rlim_t>(connections + 64);
  if (limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::unique_ptr<Service> make_service(const models::LanguageModel& model, const models::text::Tokenizer& tokenizer,
                                      ServiceOptions options) {
  const char* way = options.engine.positions > 0 ? "a smaller --positions makes" : "--sequences or --positions make";
  try {
    return std::make_unique<Service>(model, tokenizer, std::move(options));
  } catch (const OutOfMemory& error) {
    fail(ErrorKind::setting, str(error.what(), "; ", way, " the cache smaller"));
  }
}

std::string url_of(const std::string& address, int port) {
  const bool v6 = address.find(':') != std::string::npos;
  return str("http://", v6 ? "[" + address + "]" : address, ":", port);
}

// Until a signal asks to stop. A second one ends the program at once.
void wait_for_signal() {
  while (!StopSignals::requested()) std::this_thread::sleep_for(milliseconds(20));
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
}

int run_serve(const Arguments& arguments) {
  const StrictBits strict(arguments.has("strict"));
  if (const int64_t n = arguments.get_int("threads"); n > 0) set_threads(static_cast<int>(n));
  const ServerOptions options = server_options(arguments);
  check_chat_flag(arguments);  // before the model is loaded
  const std::string host = arguments.get("host");
  BoundAddress address(host, static_cast<int>(arguments.get_int("port")));
  const TextModel loaded = load_text_model(arguments);
  const ChosenChat chosen = chosen_chat(arguments, *loaded.tokenizer);
  const std::string name = arguments.has("name") ? arguments.get("name") : model_name(arguments.get("MODEL"));
  const auto service = make_service(*loaded.model, *loaded.tokenizer,
                                    {.name = name,
                                     .engine = {.sequences = arguments.get_int("sequences"),
                                                .positions = arguments.get_int("positions"),
                                                .queue = arguments.get_int("queue")},
                                     .ends = loaded.ends,
                                     .chat = chosen.chat,
                                     .own_chat = arguments.has("chat") || chosen.name != "simple",
                                     .beginnings = beginnings_of(loaded.folder)});
  raise_file_limit(options.requests + options.spare_connections);
  StopSignals signals;
  Server server(*service, options, std::move(address));
  if (arguments.has("port-file")) io::write_file(arguments.get("port-file"), str(server.port(), "\n"));
  std::printf("%s: %s parameters, context of %lld tokens, chat template %s\n", name.c_str(),
              human(static_cast<double>(models::model_size(*loaded.model->spec()).parameters), 3).c_str(),
              static_cast<long long>(service->limits().context), chosen.name.c_str());
  std::printf("serving %s/v1%s; Ctrl-C stops\n", url_of(host, server.port()).c_str(),
              options.access.key.empty() ? "" : " to clients with the key");
  std::fflush(stdout);
  wait_for_signal();
  const int64_t grace = arguments.get_int("grace");
  std::printf("stopping: requests that are being answered have %lld s to end\n", static_cast<long long>(grace));
  std::fflush(stdout);
  const bool complete = server.stop(std::chrono::seconds(grace));
  std::printf("stopped%s\n", complete ? "" : "; some requests were cut off");
  return 0;
}

std::string route_table() {
  std::string text = "Routes:\n";
  for (const Route& route : routes()) {
    std::string left = str("  ", route.method, " ", route.path);
    left.resize(std::max<size_t>(left.size() + 1, 30), ' ');
    text += left + route.help + "\n";
  }
  return text;
}

std::vector<Flag> serve_flags() {
  std::vector<Flag> flags = {
      value_flag("host", "ADDRESS", "address to listen on; others than this machine's own need a key", "127.0.0.1"),
      integer_flag("port", "N", "port to listen on, 0 = any free one", "8000", 0, 65535),
      {.name = "port-file", .value = "FILE", .help = "write the port there, once requests are accepted"},
      value_flag("key-file", "FILE",
                 "requests must have the key in this file, which only its owner may read (default: of the environment "
                 "variable BRAID_API_KEY; none: no key)"),
      {.name = "allow-host",
       .value = "NAME",
       .help = "name under which the server is asked, besides localhost and its address",
       .repeated = true},
      {.name = "allow-origin",
       .value = "URL",
       .help = "origin whose pages may send requests from a browser (CORS), such as http://localhost:3000",
       .repeated = true},
      {.name = "name", .value = "NAME", .help = "of the model in answers (default: the folder's name)"},
      chat_flag("the messages of conversations"),
      integer_flag("sequences", "N", "texts that are computed at a time", "16", 1, 4096),
      integer_flag("positions", "N", "of the cache, all texts together; 0 = sequences x the longest sequence", "0", 0,
                   1e12),
      integer_flag("queue", "N", "texts that wait; further ones get status 503", "256", 1, 1e6),
      integer_flag("requests", "N", "requests that are answered at a time; further ones get status 503", "256", 1, 1e5),
      integer_flag("grace", "SECONDS", "for requests that are being answered when the server is stopped", "10", 0,
                   86400),
      {.name = "log",
       .value = "FORM",
       .help = "a line on stderr for each answer: number, route, status (499: the client left), time; json: also the "
               "time of day, the client's address and tokens",
       .rule = models::one_of({"text", "json"}),
       .alone = "text"}};
  for (Flag& flag : text_model_flags()) flags.push_back(std::move(flag));
  return flags;
}

}  // namespace

Command serve_command() {
  return {
      .name = "serve",
      .summary = "serve a model to OpenAI clients over HTTP",
      .positionals = {{.name = "MODEL", .help = "model folder, run folder (its newest checkpoint) or RUN/best"}},
      .flags = serve_flags(),
      .overrides = kModelOverrides,
      .details = route_table() +
                 "Requests are those of OpenAI's API; also top_k, min_p, repetition_penalty, ignore_eos,\n"
                 "return_token_ids, and answer_token_ids, with which the answer of a chat begins. With\n"
                 "response_format (json_object, json_schema), tools and tool_choice the text is JSON of that form,\n"
                 "whatever the model. The name of the model in a request does not matter. SIGTERM and Ctrl-C let\n"
                 "requests end (--grace), a second one ends at once.",
      .examples = {"braid serve out/demo --port 8000",
                   "curl http://127.0.0.1:8000/v1/completions -H 'Content-Type: application/json' -d '{\"prompt\": "
                   "\"The \", \"max_tokens\": 20}'",
                   "braid serve out/demo --host 0.0.0.0 --key-file key.txt --allow-host models.example"},
      .run = run_serve};
}

}  // namespace braid::apps
