// A call of /v1/completions or /v1/chat/completions from the prompts' tokens to the answer.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "apps/serve/api/histograms.h"
#include "apps/serve/api/reply.h"
#include "apps/serve/api/requests.h"
#include "apps/serve/api/responses.h"

namespace braid::apps::serve {

class GenerationCall final : public Ticket, public std::enable_shared_from_this<GenerationCall> {
 public:
  struct Settings {
    GenerationFields fields;
    bool echo = false;
    int64_t max_tokens = 0;  // of each text, at most what the context has room for behind its prompt
    int64_t context = 0;
    std::vector<int32_t> ends;
    std::shared_ptr<const models::Constraint> constraint;  // of every text
    std::optional<models::text::CallMarks> calls;          // of tools
    std::vector<std::vector<int32_t>> prompts;             // best_of texts are made of each
    ResponseWriter::Settings response;
    TextHistograms* texts = nullptr;  // which each text that ends is added to; it outlives the engine
  };
  GenerationCall(models::GenerationEngine& engine, const models::text::Tokenizer& tokenizer, Settings settings,
                 std::shared_ptr<Reply> reply);

  // Gives every text to the engine. What cannot be done becomes the answer.
  void start();
  void cancel() override;

 private:
  bool update(size_t index, const models::Update& update);
  void submit(size_t index);
  void finish();
  std::vector<Piece> best_texts();  // n of each prompt
  void fail(const ApiError& error);
  void end_with(const ApiError& error);  // under mutex_
  void stop_all();                       // the texts that are being made

  models::GenerationEngine& engine_;
  Settings settings_;
  std::shared_ptr<Reply> reply_;
  ResponseWriter writer_;
  std::atomic<bool> ended_ = false;  // answered, or the client has left
  std::mutex ids_mutex_;
  std::vector<uint64_t> ids_;  // of the engine
  std::mutex mutex_;           // of what follows: an update may come while start() fails
  std::vector<Choice> choices_;
  std::vector<Piece> texts_;  // where the answer does not stream
  // Sum and count of the log-probabilities of new tokens and of an end, where best_of is above n.
  std::vector<std::pair<double, int64_t>> likelihoods_;
  size_t finished_ = 0;
  bool streaming_ = false;
};

// The answer to an error of the engine or of a request's own work. Errors of the program go to stderr; the client reads
// no more than that there was one.
ApiError api_error_of(std::exception_ptr error);

}  // namespace braid::apps::serve
