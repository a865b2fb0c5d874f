// Text from a model: whole or piece by piece.
#include <algorithm>
#include <utility>

#include "apps/cli/prompt.h"
#include "apps/python/loaded_model.h"
#include "braid/models/inference/batch.h"
#include "braid/models/inference/text_stream.h"
#include "braid/tensor/scoped_value.h"

namespace braid::python {

namespace {

struct TextOptions {
  int64_t max_tokens, rows;
  models::SamplingOptions sampling;
  std::vector<std::string> stops;
  bool ignore_eos, parse_specials;
};

// Continues prompts on one engine, pass by pass.
class Generation {
 public:
  Generation(const LoadedModel& m, const std::vector<std::string>& prompts, const TextOptions& o)
      : model_(m.model), tokenizer_(m.tokenizer) {
    const models::LanguageModel& model = m.language();
    std::vector<std::vector<int32_t>> tokens;
    for (const std::string& prompt : prompts) {
      tokens.push_back(apps::encode_prompt(m.text(), model, prompt, o.parse_specials));
      models::check_prompt(model, tokens.back());
    }
    const int64_t rows = std::clamp<int64_t>(o.rows, 1, std::max<int64_t>(1, std::ssize(prompts)));
    engine_.emplace(model, models::EngineOptions{.sequences = rows,
                                                 .positions = models::positions_for(tokens, rows, o.max_tokens,
                                                                                    model.max_sequence_length())});
    for (const std::vector<int32_t>& prompt : tokens) {
      Text& text = *texts_.emplace_back(std::make_unique<Text>(models::TextStream(m.text(), o.stops)));
      text.stream.begin(prompt);
      models::GenerationRequest request{.prompt = prompt, .max_tokens = o.max_tokens, .sampling = o.sampling};
      request.sampling.vocabulary = m.text().vocab_size();
      request.sampling.seed += texts_.size() - 1;
      if (!o.ignore_eos) request.ends = m.ends;
      request.on_update = [&text](const models::Update& update) {
        for (const int32_t token : update.tokens)
          if (!text.stream.stopped()) text.made += text.stream.push(token);
        if (update.finished) text.made += text.stream.finish(), text.finished = true, text.error = update.error;
        return !text.stream.stopped();
      };
      engine_->submit(std::move(request));
    }
  }

  std::vector<std::string> run() {
    while (step()) continue;
    std::vector<std::string> made;
    for (const auto& text : texts_) made.push_back(text->made);
    return made;
  }
  // What is new in the first text, None at its end. Made while the caller waits for it, without the lock; of one thread
  // at a time.
  std::optional<std::string> next() {
    check(!busy_, ErrorKind::misuse, "this text is being made for another thread: expected one thread that reads it");
    const ScopedValue<bool> busy(busy_, true);
    const Unlocked unlocked;
    Text& text = *texts_.front();
    while (text.made.size() == given_ && !text.finished) step();
    const std::string more = text.made.substr(std::exchange(given_, text.made.size()));
    if (more.empty()) return {};
    return more;
  }

 private:
  struct Text {
    explicit Text(models::TextStream s) : stream(std::move(s)) {}
    models::TextStream stream;
    std::string made;
    bool finished = false;
    std::exception_ptr error;
  };

  bool step() {
    const bool more = engine_->step();
    for (const auto& text : texts_)
      if (text->error) std::rethrow_exception(text->error);
    check_signals();
    return more;
  }

  std::shared_ptr<const models::Model> model_;  // which may outlive its LoadedModel here
  std::shared_ptr<const models::text::Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<Text>> texts_;
  std::optional<models::GenerationEngine> engine_;
  size_t given_ = 0;
  bool busy_ = false;
};

std::vector<std::string> listed(const std::string& prompt) { return {prompt}; }
std::vector<std::string> listed(const std::vector<std::string>& prompts) { return prompts; }

// Binds a method that continues a prompt or a list of prompts: finish(generation) gives its result.
template <class Prompt, class Finish>
void bind_method(nb::class_<LoadedModel>& c, const char* name, Finish finish, const char* doc) {
  c.def(
      name,
      [finish](const LoadedModel& m, const Prompt& prompt, int64_t max_tokens, double temperature, int64_t top_k,
               double top_p, double min_p, double repetition_penalty, uint64_t seed, std::vector<std::string> stop,
               bool ignore_eos, bool parse_specials, int64_t rows) {
        const TextOptions options{.max_tokens = max_tokens,
                                  .rows = rows,
                                  .sampling = {.temperature = temperature,
                                               .top_k = top_k,
                                               .top_p = top_p,
                                               .min_p = min_p,
                                               .repetition_penalty = repetition_penalty,
                                               .seed = seed},
                                  .stops = std::move(stop),
                                  .ignore_eos = ignore_eos,
                                  .parse_specials = parse_specials};
        models::check_options(options.sampling);
        return finish(std::make_unique<Generation>(m, listed(prompt), options));
      },
      "prompt"_a, "max_tokens"_a = 128, nb::kw_only(), "temperature"_a = 1.0, "top_k"_a = 0, "top_p"_a = 1.0,
      "min_p"_a = 0.0, "repetition_penalty"_a = 1.0, "seed"_a = 0, "stop"_a = std::vector<std::string>{},
      "ignore_eos"_a = false, "parse_specials"_a = false, "rows"_a = 16, nb::call_guard<Unlocked>(), doc);
}

}  // namespace

void bind_generation(nb::module_& m, nb::class_<LoadedModel>& c) {
  nb::class_<Generation>(m, "Generation", "New text, piece by piece, made while it is read.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __iter__(self) -> Generation"))
      .def("__next__", [](Generation& g) {
        const std::optional<std::string> piece = g.next();
        if (!piece) throw nb::stop_iteration();
        return *piece;
      });
  bind_method<std::string>(
      c, "generate", [](std::unique_ptr<Generation> generation) { return generation->run().front(); },
      "The new text of a prompt. temperature=0 takes the most likely token. stop: texts that end it.");
  bind_method<std::vector<std::string>>(
      c, "generate", [](std::unique_ptr<Generation> generation) { return generation->run(); },
      "The new text of each prompt, the i-th with seed + i; `rows` of them are computed at a time.");
  bind_method<std::string>(
      c, "stream", [](std::unique_ptr<Generation> generation) { return generation; },
      "The new text of a prompt as an iterator over its pieces, each as soon as it is certain.");
}

}  // namespace braid::python
