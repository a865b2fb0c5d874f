#include "apps/dump/ids.h"

#include "apps/cli/prompt.h"
#include "apps/cli/text.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {
namespace {

// A tensor of ids and where it is from, for messages.
struct Source {
  std::string name;
  ErrorKind kind;
};

// ids must be (B, T) integers in [0, vocabulary), not empty, T <= longest. `negative`: also below 0.
void check_ids_fit(const Tensor& ids, const Source& from, int64_t vocabulary, int64_t longest, bool negative = false) {
  check(ids.rank() == 2 && is_index(ids.dtype()), from.kind,
        [&] { return str(from.name, " must be (B, T) integers, found ", ids.dtype(), " ", ids.shape()); });
  check(ids.numel() > 0, from.kind,
        [&] { return str(from.name, " is empty: expected at least one row of one token, found ", ids.shape()); });
  check(ids.dim(1) <= longest, from.kind, [&] {
    return str(from.name, " is too long: expected at most the model's longest sequence of ", longest, " tokens, found ",
               ids.dim(1));
  });
  const std::vector<int64_t> values = ids.to_vector<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    check((negative && values[i] < 0) || (values[i] >= 0 && values[i] < vocabulary), from.kind, [&] {
      const auto T = static_cast<size_t>(ids.dim(1));
      return str(from.name, " is out of range at row ", i / T, ", position ", i % T, ": expected 0 to ", vocabulary - 1,
                 negative ? ", or negative where it is not counted" : "", ", found ", values[i]);
    });
  }
}

// Targets that are the next tokens, none for the last.
Tensor next_tokens(const Tensor& ids) {
  Tensor targets = full(ids.shape(), -100, DType::i64);
  const int64_t T = ids.dim(1);
  if (T > 1) targets.sliced(1, 0, T - 1).copy_(ids.sliced(1, 1, T));
  return targets;
}

Tensor one_row(const std::vector<int32_t>& tokens) { return from_vector(tokens, {1, std::ssize(tokens)}); }

std::optional<std::vector<int32_t>> id_list(const std::string& text) {
  std::vector<int32_t> ids;
  for (const std::string& item : split(text, ',')) {
    const auto id = parse_int(trim(item));
    if (!id || *id < 0 || *id > INT32_MAX) return std::nullopt;
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

void read_decoding(const Arguments& arguments, const models::LanguageModel& model, DumpIds& read) {
  const std::vector<std::string> counts = arguments.list("decode");
  const int64_t P = *parse_int(counts.at(0)), N = *parse_int(counts.at(1)), T = read.ids.dim(1);
  if (!read.decode_prompt) {
    check(P <= T, ErrorKind::setting,
          [&] { return str("--decode P N: expected P from 1 to the ", T, " ids of a row, found ", P); });
    read.decode_prompt = read.ids.sliced(1, 0, P).clone();
  }
  const int64_t longest = model.max_sequence_length(), prompt = read.decode_prompt.dim(1);
  check(N <= longest - prompt, ErrorKind::setting, [&] {
    return str("--decode P N: expected at most the model's longest sequence of ", longest, " tokens in all, found ",
               prompt, " + ", N);
  });
  read.decode_steps = N;
}

}  // namespace

bool ids_from_text(const Arguments& arguments) { return arguments.has("prompt") || arguments.has("text"); }

void check_one_source(const Arguments& arguments) {
  const int given = arguments.has("ids") + arguments.has("prompt") + arguments.has("text");
  check(given == 1, ErrorKind::setting, [&] {
    return str("expected one of --ids (a safetensors file with input_ids, or 1,2,3), --prompt and --text, found ",
               given == 0 ? "none" : "several");
  });
}

DumpIds read_ids(const Arguments& arguments, const models::LanguageModel& model,
                 const models::text::Tokenizer* tokenizer) {
  const int64_t V = model.vocab_size(), longest = model.max_sequence_length();
  DumpIds read;
  if (ids_from_text(arguments)) {
    const bool flag = arguments.has("prompt");
    const std::string text = flag ? prompt_text(arguments) : read_whole_text(arguments.get("text"));
    read.ids = one_row(encode_prompt(*tokenizer, model, text, arguments.has("parse-specials")));
    check_ids_fit(read.ids, {flag ? "the prompt" : arguments.get("text"), flag ? ErrorKind::setting : ErrorKind::input},
                  V, longest);
  } else if (const auto list = id_list(arguments.get("ids"))) {
    read.ids = one_row(*list);
    check_ids_fit(read.ids, {"--ids", ErrorKind::setting}, V, longest);
  } else {
    const io::SafetensorsFile file(arguments.get("ids"));
    const auto named = [&](const char* name) -> Source { return {name + (" in " + file.path()), ErrorKind::input}; };
    read.ids = file.load("input_ids");
    check_ids_fit(read.ids, named("input_ids"), V, longest);
    if (file.find("targets")) {
      read.targets = file.load("targets");
      check(read.targets.shape() == read.ids.shape(), ErrorKind::input, [&] {
        return str(named("targets").name, " must be integers of shape ", read.ids.shape(), ", found ",
                   read.targets.dtype(), " ", read.targets.shape());
      });
      check_ids_fit(read.targets, named("targets"), V, longest, true);
    }
    if (file.find("decode.prompt_ids")) {
      read.decode_prompt = file.load("decode.prompt_ids");
      check_ids_fit(read.decode_prompt, named("decode.prompt_ids"), V, longest);
    }
  }
  if (!read.targets) read.targets = next_tokens(read.ids.to(DType::i64));
  if (arguments.has("decode")) read_decoding(arguments, model, read);
  return read;
}

}  // namespace braid::apps
