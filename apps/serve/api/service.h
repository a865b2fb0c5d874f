// The model behind the routes: bodies become requests to the generation engine, whose thread this is.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "apps/serve/api/generation_call.h"
#include "apps/serve/api/histograms.h"
#include "apps/serve/api/routes.h"
#include "apps/serve/api/work_queue.h"
#include "braid/models/data/prepare/chat.h"
#include "braid/models/inference/constraint/constraint.h"
#include "braid/models/inference/engine.h"

namespace braid::apps::serve {

struct ServiceOptions {
  std::string name;  // of the model in answers
  models::EngineOptions engine;
  std::vector<int32_t> ends;        // tokens that end a text
  models::text::ChatTemplate chat;  // of conversations
  // What the page says of the model: whether its conversations have a template of its own, and texts to begin with.
  bool own_chat = true;
  std::vector<std::string> beginnings = {};
};

inline constexpr size_t max_tokenizing = 64;         // requests of /tokenize and /detokenize that wait; then 503
inline constexpr size_t long_body_bytes = 64 << 10;  // of a body whose text takes longer than those of most requests

class Service {
 public:
  // Model and tokenizer must outlive it. Begins its threads.
  Service(const models::LanguageModel& model, const models::text::Tokenizer& tokenizer, ServiceOptions options);
  ~Service();

  // Never waits. The reply gets exactly one answer, perhaps before this returns, unless the ticket is cancelled.
  // Takes every task but health and metrics, which belong to the server. body: of Task::model the name that is asked
  // for.
  std::shared_ptr<Ticket> call(Task task, std::string body, std::shared_ptr<Reply> reply);
  models::EngineLoad load() const { return engine_.load(); }
  const TextHistograms& texts() const { return texts_; }
  bool invariant() const { return engine_.invariant(); }  // answers do not depend on the others
  const std::string& name() const { return options_.name; }
  const RequestLimits& limits() const { return limits_; }

 private:
  class Call;
  WorkQueue& queue_of(Task task, size_t bytes);
  void answer(Task task, const std::string& body, Call& call);
  std::shared_ptr<GenerationCall> make_call(Task task, const std::string& body, std::shared_ptr<Reply> reply);
  std::vector<int32_t> encode(const std::string& text, bool parse_special, bool add_special) const;
  void check_prompts(const std::vector<std::vector<int32_t>>& prompts, const char* param) const;
  Response inspect(const std::string& body) const;
  std::string tokenize(const std::string& body) const;
  std::string detokenize(const std::string& body) const;
  std::string tokenizer_info() const;
  std::string model_list() const;
  std::string model(const std::string& name) const;
  std::shared_ptr<const models::Constraint> constraint_of(GrammarPointer grammar);
  void run_engine();

  const models::LanguageModel& model_;
  const models::text::Tokenizer& tokenizer_;
  ServiceOptions options_;
  RequestLimits limits_;
  int64_t longest_text_ = 0;  // bytes that may still fit the context
  int64_t created_ = 0;
  uint64_t first_seed_ = 0;
  std::atomic<uint64_t> calls_ = 0;
  std::once_flag vocabulary_made_;
  std::shared_ptr<const models::Vocabulary> vocabulary_;  // made for the first constraint
  TextHistograms texts_;
  models::GenerationEngine engine_;
  std::atomic<bool> stopped_ = false;
  std::thread engine_thread_;
  // A long text takes seconds: those of /tokenize, and long bodies of other routes, have threads of their own.
  WorkQueue work_{2}, long_work_{1}, tokenizing_{1, max_tokenizing}, inspections_{1};
};

}  // namespace braid::apps::serve
