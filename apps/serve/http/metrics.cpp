#include "apps/serve/http/metrics.h"

#include "apps/cli/exposition.h"

namespace braid::apps::serve {

std::string metrics_text(const HttpCounts& counts, const models::EngineLoad& load, const TextHistograms& texts) {
  Exposition metrics;
  const auto add = [&](const char* name, const char* type, const char* help, int64_t value) {
    metrics.add(str("braid_", name), type, help, std::to_string(value));
  };
  add("prompt_tokens_total", "counter", "Tokens of prompts, computed or found in a cache.", load.prompt_tokens);
  add("shared_tokens_total", "counter", "Tokens of prompts that were found in a cache.", load.shared_tokens);
  add("tokens_predicted_total", "counter", "New tokens.", load.new_tokens);
  add("passes_total", "counter", "Passes over the weights.", load.passes);
  add("sequences_finished_total", "counter", "Texts that are complete.", load.finished);
  add("sequences_cancelled_total", "counter", "Texts whose client left.", load.cancelled);
  add("sequences_failed_total", "counter", "Texts that could not be made.", load.failed);
  add("requests_processing", "gauge", "Texts that are computed now.", load.running);
  add("requests_deferred", "gauge", "Texts that wait.", load.waiting);
  add("cache_blocks", "gauge", "Blocks of the cache.", load.blocks);
  add("cache_free_blocks", "gauge", "Blocks of the cache that are free.", load.free_blocks);
  add("http_connections", "gauge", "Open connections.", counts.connections);
  add("http_requests", "gauge", "HTTP requests that are being answered.", counts.requests);
  add("http_accepted_total", "counter", "Connections accepted.", counts.accepted);
  add("http_evicted_total", "counter", "Idle connections closed to make room.", counts.evicted);
  add("http_timeouts_total", "counter", "Connections closed at a deadline.", counts.timeouts);
  add("http_slow_readers_total", "counter", "Connections closed because the client did not read.", counts.slow_readers);
  add("http_left_total", "counter", "Clients that left before the end of their answer.", counts.left);
  metrics.begin("braid_http_answers_total", "counter",
                "Answers by route and status; 499: the client left before its end.");
  for (const auto& [key, count] : counts.answers)
    metrics.sample(std::to_string(count), {{"route", key.first}, {"status", std::to_string(key.second)}});
  return metrics.text() + texts.text();
}

}  // namespace braid::apps::serve
