#include "apps/serve/api/service.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/serve/api/inspect_request.h"
#include "apps/serve/api/request_fields.h"
#include "braid/models/inspect/inspection_json.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"

namespace braid::apps::serve {
namespace {

using nlohmann::ordered_json;

int64_t seconds_since_1970() {
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

std::string line_of(const ordered_json& value) { return value.dump() + "\n"; }

}  // namespace

// From the connection to the engine: work for it may be cancelled before the engine has it.
class Service::Call final : public Ticket {
 public:
  explicit Call(std::shared_ptr<Reply> to) : reply(std::move(to)) {}
  void cancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (generation_) generation_->cancel();
  }
  bool cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }
  void start(std::shared_ptr<GenerationCall> generation) {
    {
      const std::lock_guard lock(mutex_);
      if (cancelled_) return;
      generation_ = generation;
    }
    generation->start();
  }

  const std::shared_ptr<Reply> reply;

 private:
  std::mutex mutex_;
  bool cancelled_ = false;
  std::shared_ptr<GenerationCall> generation_;
};

Service::Service(const models::LanguageModel& model, const models::text::Tokenizer& tokenizer, ServiceOptions options)
    : model_(model), tokenizer_(tokenizer), options_(std::move(options)), engine_(model, options_.engine) {
  options_.name = detail::replace_invalid_utf8(options_.name);  // of a folder, whose name may be any bytes
  limits_.ids = std::min(model.vocab_size(), tokenizer.vocab_size());
  limits_.context = model.max_sequence_length();
  if (options_.engine.positions > 0) limits_.context = std::min(limits_.context, options_.engine.positions);
  if (options_.engine.queue > 0) limits_.sequences = std::min(limits_.sequences, options_.engine.queue);
  int64_t longest_token = 1;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    longest_token = std::max(longest_token, std::ssize(tokenizer.token_bytes(id)));
  longest_text_ = 4 * limits_.context * longest_token;  // normalisation makes a text shorter by less than that
  created_ = seconds_since_1970();
  first_seed_ = std::random_device{}();
  engine_thread_ = std::thread([this] { run_engine(); });
}

Service::~Service() {
  for (WorkQueue* queue : {&work_, &long_work_, &tokenizing_, &inspections_}) queue->stop();
  stopped_ = true;
  engine_thread_.join();
}

void Service::run_engine() {
  while (!stopped_) {
    try {
      if (!engine_.step()) engine_.wait_for_work(std::chrono::milliseconds(50));
    } catch (const std::exception& error) {  // the requests of that pass have failed; the rest continue
      std::fprintf(stderr, "error: a pass of the model failed: %s\n", error.what());
    }
  }
}

WorkQueue& Service::queue_of(Task task, size_t bytes) {
  if (task == Task::inspect) return inspections_;
  if (task == Task::tokenize || task == Task::detokenize) return tokenizing_;
  return bytes > long_body_bytes ? long_work_ : work_;
}

std::shared_ptr<Ticket> Service::call(Task task, std::string body, std::shared_ptr<Reply> reply) {
  const auto call = std::make_shared<Call>(std::move(reply));
  const bool queued = queue_of(task, body.size()).add([this, task, call, text = std::move(body)] {
    if (call->cancelled()) return;
    try {
      answer(task, text, *call);
    } catch (...) {
      call->reply->send(Response::of(api_error_of(std::current_exception())));
    }
  });
  if (!queued)
    call->reply->send(
        Response::of(ApiError(503, "too many texts wait for their tokens; try again later", "", "overloaded")));
  return call;
}

void Service::answer(Task task, const std::string& body, Call& call) {
  switch (task) {
    case Task::completions:
    case Task::chat:
      return call.start(make_call(task, body, call.reply));
    case Task::tokenize:
      return call.reply->send({.body = tokenize(body)});
    case Task::detokenize:
      return call.reply->send({.body = detokenize(body)});
    case Task::tokenizer_info:
      return call.reply->send({.body = tokenizer_info()});
    case Task::models:
      return call.reply->send({.body = model_list()});
    case Task::model:
      return call.reply->send({.body = model(body)});
    case Task::inspect:
      return call.reply->send(inspect(body));
    case Task::page:
    case Task::health:
    case Task::ready:
    case Task::version:
    case Task::metrics:
      break;
  }
  throw ApiError(500, "this task belongs to the server", "", "internal_error");
}

std::vector<int32_t> Service::encode(const std::string& text, bool parse_special, bool add_special) const {
  std::vector<int32_t> tokens = tokenizer_.encode(text, parse_special);
  if (!add_special) return tokens;
  const std::vector<int32_t> begin = models::text::template_begin(tokenizer_);
  tokens.insert(tokens.begin(), begin.begin(), begin.end());
  return tokens;
}

void Service::check_prompts(const std::vector<std::vector<int32_t>>& prompts, const char* param) const {
  for (const std::vector<int32_t>& prompt : prompts)
    if (std::ssize(prompt) > limits_.context)
      throw ApiError(400, str("the context is ", limits_.context, " tokens: the prompt has ", prompt.size()), param,
                     "context_length_exceeded");
}

std::shared_ptr<const models::Constraint> Service::constraint_of(GrammarPointer grammar) {
  if (!grammar) return nullptr;
  std::call_once(vocabulary_made_, [&] {
    const auto [begin, end] = models::text::call_marks(options_.chat);
    vocabulary_ = std::make_shared<const models::Vocabulary>(tokenizer_, std::vector<std::string>{begin, end});
  });
  return std::make_shared<const models::Constraint>(models::Constraint{std::move(grammar), vocabulary_});
}

std::shared_ptr<GenerationCall> Service::make_call(Task task, const std::string& body, std::shared_ptr<Reply> reply) {
  const uint64_t number = ++calls_;
  GenerationCall::Settings settings;
  settings.ends = options_.ends;
  const auto check_length = [&](std::string_view text, const char* param) {
    if (std::ssize(text) > longest_text_)
      throw ApiError(
          400, str("the text has ", text.size(), " bytes and cannot fit the context of ", limits_.context, " tokens"),
          param, "context_length_exceeded");
  };
  const auto or_new_document = [&](std::vector<int32_t> prompt) {
    if (prompt.empty()) prompt = {models::text::document_end(tokenizer_, "a text begins behind")};
    return prompt;
  };
  int64_t fallback = 16;
  if (task == Task::chat) {
    ChatRequest request = parse_chat_request(body, limits_);
    settings.fields = std::move(request.fields);
    for (const models::text::ChatTurn& turn : request.messages) {
      check_length(turn.content, "messages");
      if (!turn.calls.is_null()) check_length(turn.calls.dump(), "messages");
    }
    if (!request.tools.described.is_null()) check_length(request.tools.described.dump(), "tools");
    try {
      settings.prompts = {or_new_document(
          models::text::chat_prompt(request.messages, request.tools.described, options_.chat, tokenizer_))};
    } catch (const Error& error) {  // of the chat template of the model's folder
      if (error.kind() != ErrorKind::input) throw;
      throw ApiError(400, error.what(), "messages", "invalid_value");
    }
    fallback = limits_.context;
    std::string end = models::text::answer_end(options_.chat);
    const std::vector<int32_t> tokens = tokenizer_.encode(end, true);
    if (tokens.size() == 1 && tokenizer_.is_special(tokens[0])) {
      settings.ends.push_back(tokens[0]);
      end = "";
    }
    GrammarPointer grammar = settings.fields.format;
    if (!request.tools.callable.empty()) {
      settings.calls = models::text::call_marks(options_.chat);
      grammar = call_grammar(request.tools, *settings.calls, end);
    }
    // A value in a format ends by itself, and its white space may contain the end of an answer.
    if (!end.empty() && !settings.fields.format) settings.fields.stops.push_back(end);
    settings.constraint = constraint_of(std::move(grammar));
    for (const int32_t token : request.answer)
      if (std::ranges::find(settings.ends, token) != settings.ends.end())
        throw ApiError(400, str("the answer has ended: token ", token, " of 'answer_token_ids' ends it"),
                       "answer_token_ids", "invalid_value");
    settings.prompts[0].insert(settings.prompts[0].end(), request.answer.begin(), request.answer.end());
  } else {
    CompletionRequest request = parse_completion_request(body, limits_);
    settings.fields = std::move(request.fields);
    settings.echo = request.echo;
    settings.constraint = constraint_of(settings.fields.format);
    for (CompletionRequest::Prompt& prompt : request.prompts) {
      if (auto* text = std::get_if<std::string>(&prompt)) {
        check_length(*text, "prompt");
        prompt = encode(*text, request.parse_special, request.add_special_tokens);
      }
      settings.prompts.push_back(or_new_document(std::move(std::get<std::vector<int32_t>>(prompt))));
    }
  }
  check_prompts(settings.prompts, task == Task::chat ? "messages" : "prompt");
  settings.max_tokens = settings.fields.max_tokens.value_or(fallback);
  settings.context = limits_.context;
  settings.texts = &texts_;
  if (settings.fields.ignore_eos) settings.ends.clear();
  if (!settings.fields.seeded) settings.fields.sampling.seed = (first_seed_ << 32) + (number << 8);
  settings.response = {
      .chat = task == Task::chat,
      .scores = settings.fields.top.has_value(),
      .ids = settings.fields.return_token_ids,
      .usage = settings.fields.include_usage,
      .id = (task == Task::chat ? "chatcmpl-" : "cmpl-") + detail::hex(first_seed_, 8) + detail::hex(number, 8),
      .created = seconds_since_1970(),
      .model = options_.name};
  return std::make_shared<GenerationCall>(engine_, tokenizer_, std::move(settings), std::move(reply));
}

// In a thread of its own, one after the other; passes of the engine continue beside it.
Response Service::inspect(const std::string& body) const {
  InspectRequest request = parse_inspect_request(body, limits_);
  if (request.prompt) request.inspection.tokens = encode(*request.prompt, true, true);
  const models::Inspection inspection = models::inspect(model_, request.inspection);
  if (request.binary)
    return {.body = models::inspection_safetensors(inspection, &tokenizer_, request.dtype),
            .type = "application/octet-stream"};
  return {.body = models::inspection_json(inspection, &tokenizer_, request.dtype) + "\n"};
}

std::string Service::tokenize(const std::string& body) const {
  const TokenizeRequest request = parse_tokenize_request(body);
  const std::vector<int32_t> tokens = encode(request.text, request.parse_special, request.add_special_tokens);
  return line_of({{"tokens", tokens}, {"count", tokens.size()}, {"max_model_len", limits_.context}});
}

std::string Service::detokenize(const std::string& body) const {
  const std::vector<int32_t> tokens = parse_detokenize_request(body, limits_);
  return line_of({{"prompt", detail::replace_invalid_utf8(tokenizer_.decode(tokens))}});
}

std::string Service::tokenizer_info() const {
  const auto text_or_null = [&](int32_t id) {
    return id < 0 ? ordered_json() : ordered_json(token_text(tokenizer_, id));
  };
  const std::vector<int32_t> begin = models::text::template_begin(tokenizer_);
  return line_of({{"tokenizer_class", tokenizer_.name()},
                  {"vocab_size", tokenizer_.vocab_size()},
                  {"eos_token", text_or_null(tokenizer_.eos_id())},
                  {"bos_token", text_or_null(begin.empty() ? -1 : begin[0])},
                  {"pad_token", text_or_null(tokenizer_.pad_id())},
                  {"chat_template", nullptr}});
}

std::string Service::model_list() const {
  return line_of({{"object", "list"}, {"data", ordered_json::array({ordered_json::parse(model(options_.name))})}});
}

std::string Service::model(const std::string& name) const {
  if (name != options_.name)
    throw ApiError(404, "there is no model of this name: expected one that GET /v1/models lists", "model",
                   "model_not_found");
  return line_of({{"id", options_.name},
                  {"object", "model"},
                  {"created", created_},
                  {"owned_by", "braid"},
                  {"max_model_len", limits_.context},
                  {"own_chat_template", options_.own_chat},
                  {"beginnings", options_.beginnings}});
}

}  // namespace braid::apps::serve
