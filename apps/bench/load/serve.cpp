// braid bench serve: the latency and throughput of a server under load.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/bench/bench.h"
#include "apps/bench/load/report.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

// Ids of some text by the server's own tokenizer: prompts of any length are cut out of it.
std::vector<int32_t> some_tokens(const Url& url, const std::string& key) {
  std::string words;
  for (int i = 0; i < 64; ++i) words += str("Call number ", i * 7919 % 1000, " asks for a word that follows. ");
  HttpClient client(url);
  const HttpResponse response =
      client.send({.method = "POST",
                   .target = "/tokenize",
                   .body = nlohmann::json{{"prompt", words}, {"add_special_tokens", false}}.dump(),
                   .key = key},
                  HttpClient::Clock::now() + std::chrono::seconds(30));
  check(response.status == 200, ErrorKind::output, [&] {
    return str("the server at ", url.host, ":", url.port, " answered /tokenize with status ", response.status, ": ",
               preview(response.body, 200));
  });
  const nlohmann::json json = nlohmann::json::parse(response.body, nullptr, false);
  std::vector<int32_t> ids;
  if (json.is_object() && json.contains("tokens") && json["tokens"].is_array())
    for (const auto& id : json["tokens"])
      if (id.is_number_integer()) ids.push_back(id.get<int32_t>());
  check(!ids.empty(), ErrorKind::output, [&] {
    return "the server at " + url.host + ":" + url.port +
           " answered /tokenize without tokens: expected {\"tokens\": [...]}; is it braid serve?";
  });
  return ids;
}

// "1,4,16": numbers above 0.
std::vector<double> numbers(const Arguments& arguments, const std::string& flag) {
  std::vector<double> values;
  for (const std::string& word : split(arguments.get(flag), ',')) {
    const auto value = parse_float(trim(word));
    check(value && *value > 0 && *value <= 1e5, ErrorKind::setting, [&] {
      return "bad value for --" + flag + ": expected numbers from 0 to 100000 with commas between them, found '" +
             arguments.get(flag) + "'";
    });
    values.push_back(*value);
  }
  return values;
}

std::string key_of(const Arguments& arguments) {
  if (!arguments.has("key-file")) return "";
  return std::string(trim(io::read_text_file(arguments.get("key-file"), 1 << 16)));
}

}  // namespace

int bench_serve(const Arguments& arguments) {
  check(arguments.has("URL"), ErrorKind::setting,
        "bench serve needs the address of a server: expected braid bench serve http://127.0.0.1:8000");
  const bool open_loop = arguments.has("rate");
  LoadPlan plan{.url = parse_url(arguments.get("URL")), .key = key_of(arguments)};
  if (plan.url.path.ends_with("/v1")) plan.url.path.resize(plan.url.path.size() - 3);
  if (arguments.has("seconds")) plan.seconds = arguments.get_float("seconds");
  const int64_t prompt = arguments.get_int("context"), tokens = arguments.get_int("tokens");
  const std::vector<double> loads = numbers(arguments, open_loop ? "rate" : "clients");
  const std::string out = arguments.get("out");
  const std::filesystem::path folder = std::filesystem::path(out).parent_path();
  check(out.empty() || folder.empty() || std::filesystem::is_directory(folder), ErrorKind::output,
        [&] { return "the chart cannot be written: there is no folder " + folder.string(); });
  const StopSignals signals;
  const std::vector<int32_t> text = some_tokens(plan.url, plan.key);
  int64_t sent = 0;  // by earlier loads: every prompt begins at another place, so that none is in a cache
  plan.body = [&](int64_t i) {
    std::vector<int32_t> ids;
    for (int64_t k = 0; k < prompt; ++k)
      ids.push_back(text[static_cast<size_t>((k + k / std::ssize(text) + 31 * (sent + i)) % std::ssize(text))]);
    return nlohmann::json{{"prompt", ids},     {"max_tokens", tokens}, {"temperature", 1},
                          {"seed", sent + i},  {"stream", true},       {"stream_options", {{"include_usage", true}}},
                          {"ignore_eos", true}}
        .dump();
  };
  std::vector<LoadLevel> levels;
  for (const double load : loads) {
    if (StopSignals::requested()) break;
    plan.rate = open_loop ? load : 0;
    // An open loop gets enough clients that one is free at each arrival, but no more than descriptors allow.
    plan.clients = open_loop ? std::clamp<int64_t>(std::llround(load * plan.timeout), 1, 512)
                             : std::max<int64_t>(1, std::llround(load));
    std::fprintf(stderr, "%s for %s ...\n",
                 open_loop ? (shortest(load) + " requests/s").c_str() : str(plan.clients, " clients").c_str(),
                 duration(plan.seconds).c_str());
    LoadLevel level{.name = open_loop ? shortest(load) + " requests/s"
                                      : str(plan.clients, plan.clients == 1 ? " client" : " clients")};
    level.records = run_load(plan, StopSignals::requested);
    for (const LoadRecord& r : level.records) level.seconds = std::max(level.seconds, r.end);
    sent += std::ssize(level.records);
    levels.push_back(std::move(level));
  }
  const std::string title = str(prompt, " tokens of prompt, ", tokens, " new ones");
  if (!out.empty()) io::write_file(out, load_chart(levels, "braid bench serve: " + title));
  if (arguments.has("json"))
    std::printf("%s\n", load_json(levels).c_str());
  else
    std::printf("%s a request; latencies from when a request was due\n%s", title.c_str(), load_table(levels).c_str());
  int64_t answered = 0;
  for (const LoadLevel& level : levels) answered += level.answered();
  check(answered > 0, ErrorKind::output, [&] {
    return "no request was answered: " +
           (levels.empty() || levels[0].errors().empty() ? "none was sent" : levels[0].errors()[0]);
  });
  return StopSignals::requested() ? exit_stopped : 0;
}

}  // namespace braid::apps
