#include "apps/serve/api/generation_call.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "braid/models/inference/constraint/constraint.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::apps::serve {

ApiError api_error_of(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& e) {
    return e;
  } catch (const OutOfMemory&) {
    return ApiError(503, "the server has no memory for this request; try again later", "", "overloaded");
  } catch (const std::bad_alloc&) {
    return ApiError(503, "the server has no memory for this request; try again later", "", "overloaded");
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::setting || e.kind() == ErrorKind::input) return ApiError(400, e.what());
    if (e.kind() == ErrorKind::numerical) return ApiError(500, e.what(), "", "numerical_failure");
    std::fprintf(stderr, "error: a request failed: %s\n", e.what());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: a request failed: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "error: a request failed: unknown exception\n");
  }
  return ApiError(500, "the server failed on this request; its log says why", "", "internal_error");
}

GenerationCall::GenerationCall(models::GenerationEngine& engine, const models::text::Tokenizer& tokenizer,
                               Settings settings, std::shared_ptr<Reply> reply)
    : engine_(engine),
      settings_(std::move(settings)),
      reply_(std::move(reply)),
      writer_(tokenizer, settings_.response) {
  choices_.reserve(settings_.prompts.size() * static_cast<size_t>(settings_.fields.best_of));
  Choice::Settings choice{.stops = settings_.fields.stops,
                          .scores = settings_.fields.top.has_value(),
                          .echo = settings_.echo,
                          .ids = settings_.fields.return_token_ids,
                          .calls = {}};
  const std::string& id = settings_.response.id;
  for (const std::vector<int32_t>& prompt : settings_.prompts)
    for (int64_t i = 0; i < settings_.fields.best_of; ++i) {
      if (settings_.calls)
        choice.calls = {*settings_.calls, settings_.fields.stops,
                        "call_" + id.substr(id.find('-') + 1) + detail::hex(static_cast<uint64_t>(i), 2)};
      choices_.emplace_back(tokenizer, prompt, choice);
    }
  texts_.resize(choices_.size());
  likelihoods_.resize(choices_.size());
}

void GenerationCall::submit(size_t index) {
  const GenerationFields& fields = settings_.fields;
  models::GenerationRequest request;
  request.prompt = settings_.prompts[index / static_cast<size_t>(fields.best_of)];
  request.max_tokens = std::min(settings_.max_tokens, settings_.context - std::ssize(request.prompt));
  request.sampling = fields.sampling;
  request.sampling.seed += index;  // every text has draws of its own
  request.ends = settings_.ends;
  request.constraint = settings_.constraint;
  request.logprobs = fields.top.has_value() || fields.best_of > fields.n;
  request.top = fields.top.value_or(0);
  if (fields.top.has_value() && settings_.echo) request.score_from = 1;
  request.on_update = [self = shared_from_this(), index](const models::Update& u) { return self->update(index, u); };
  const std::optional<uint64_t> id = engine_.submit(std::move(request));
  if (!id) throw ApiError(503, "too many requests wait for the model; try again later", "", "overloaded");
  const std::lock_guard lock(ids_mutex_);
  ids_.push_back(*id);
}

void GenerationCall::start() {
  try {
    for (size_t i = 0; i < choices_.size() && !ended_; ++i) submit(i);
  } catch (...) {
    fail(api_error_of(std::current_exception()));
  }
  if (ended_) stop_all();  // cancel() may have come before the last ids were known
}

void GenerationCall::stop_all() {
  const std::lock_guard lock(ids_mutex_);
  for (const uint64_t id : ids_) engine_.cancel(id);
}

void GenerationCall::cancel() {
  ended_ = true;
  stop_all();
}

void GenerationCall::fail(const ApiError& error) {
  const std::lock_guard lock(mutex_);
  end_with(error);
}

// The answer becomes an error; of a stream that has begun, its last event.
void GenerationCall::end_with(const ApiError& error) {
  if (ended_.exchange(true)) return;
  if (!streaming_) return reply_->send(Response::of(error));
  reply_->stream(ResponseWriter::error_event(error.body()));
  reply_->end_stream();
}

bool GenerationCall::update(size_t index, const models::Update& update) {
  const std::lock_guard lock(mutex_);
  if (choices_[index].finished()) {
    if (update.finished && settings_.texts)  // behind a stop string
      settings_.texts->add(update, choices_[index].new_tokens(), settings_.max_tokens);
    return false;
  }
  if (ended_)
    return true;  // the engine has been told, or will be before its next pass: it counts the text as cancelled
  try {
    for (const models::TokenScore& score : update.scores)
      likelihoods_[index].first += score.logprob, ++likelihoods_[index].second;
    Choice& choice = choices_[index];
    Piece piece = choice.update(update);
    if (!settings_.fields.stream) {
      texts_[index].append(std::move(piece));
    } else if (!piece.empty()) {
      std::string events = streaming_ ? "" : writer_.begin_events(std::ssize(choices_));
      streaming_ = true;
      reply_->stream(events + writer_.event(static_cast<int64_t>(index), piece));
    }
    if (!choice.finished()) return true;
    if (update.finished && settings_.texts) settings_.texts->add(update, choice.new_tokens(), settings_.max_tokens);
    if (++finished_ == choices_.size()) finish();
  } catch (...) {
    end_with(api_error_of(std::current_exception()));
    stop_all();
  }
  return false;
}

void GenerationCall::finish() {
  Usage usage;
  for (const std::vector<int32_t>& prompt : settings_.prompts) usage.prompt_tokens += std::ssize(prompt);
  for (const Choice& choice : choices_) usage.completion_tokens += choice.new_tokens();
  // A prompt counts once, with its first text: the others share what that one computed.
  for (size_t i = 0; i < choices_.size(); i += static_cast<size_t>(settings_.fields.best_of))
    usage.shared_tokens += choices_[i].shared_tokens();
  if (ended_.exchange(true)) return;
  const TokenCounts counts{usage.prompt_tokens, usage.completion_tokens};
  if (!streaming_) return reply_->send({.body = writer_.whole(best_texts(), usage), .tokens = counts});
  reply_->stream(writer_.end_events(usage));
  reply_->end_stream(counts);
}

// Those whose tokens have the highest log-probability in the mean, in the order of that.
std::vector<Piece> GenerationCall::best_texts() {
  const auto n = static_cast<size_t>(settings_.fields.n), made = static_cast<size_t>(settings_.fields.best_of);
  if (n == made) return std::move(texts_);
  const auto mean = [&](size_t i) {
    return likelihoods_[i].first / static_cast<double>(std::max<int64_t>(1, likelihoods_[i].second));
  };
  std::vector<Piece> best;
  for (size_t first = 0; first < texts_.size(); first += made) {
    std::vector<size_t> order(made);
    std::iota(order.begin(), order.end(), first);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return mean(a) > mean(b); });
    for (size_t i = 0; i < n; ++i) best.push_back(std::move(texts_[order[i]]));
  }
  return best;
}

}  // namespace braid::apps::serve
