// braid tokenize: the tokens of a text in colors, or the ids of the texts of a JSONL file.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/output_name.h"
#include "apps/cli/prompt.h"
#include "apps/cli/text.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/line_reader.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

using models::text::Tokenizer;
using nlohmann::ordered_json;

// Encodes texts by the flags, and measures: several threads add up.
struct Encoder {
  const Tokenizer& tokenizer;
  bool special, as_text;
  std::string field;  // of JSON objects; "": text, or t, as earlier versions called it
  std::atomic<int64_t> bytes = 0, tokens = 0, nanoseconds = 0;

  std::vector<int32_t> operator()(const std::string& text) {
    const int64_t start = thread_time();
    std::vector<int32_t> ids = tokenizer.encode(text, !as_text);
    nanoseconds += thread_time() - start;
    bytes += static_cast<int64_t>(text.size());
    tokens += static_cast<int64_t>(ids.size());
    return special ? tokenizer.with_template(ids) : ids;
  }

  static int64_t thread_time() {  // in ns, of the processor: other programs do not count
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
  }

  void print_rate() const {
    const double seconds = std::max(1e-9, 1e-9 * static_cast<double>(nanoseconds));
    std::fprintf(stderr, "%lld bytes, %lld tokens, %s MB/s on each thread\n", static_cast<long long>(bytes),
                 static_cast<long long>(tokens), human(1e-6 * static_cast<double>(bytes) / seconds, 3).c_str());
  }
};

// The bytes of a token for a terminal: line ends and tabs as escapes, bytes that are no character as <0xHH>.
std::string shown_token(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const int k = detail::utf8_prefix(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (k <= 0 || first < 0x20 || first == 0x7F) {
      char escape[8];
      if (first == '\n' || first == '\t' || first == '\r')
        text += first == '\n' ? "\\n" : first == '\t' ? "\\t" : "\\r";
      else
        std::snprintf(escape, sizeof escape, "<0x%02X>", first), text += escape;
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, static_cast<size_t>(k));
      bytes.remove_prefix(static_cast<size_t>(k));
    }
  }
  return text;
}

// On a terminal: the text with a background color per token, a line end after each token that has one, then the ids.
// Elsewhere: one line per token, its id and its text.
void print_tokens(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  const bool colors = ::isatty(STDOUT_FILENO) != 0;
  constexpr const char* backgrounds[] = {"\033[48;5;153m\033[30m", "\033[48;5;187m\033[30m", "\033[48;5;151m\033[30m",
                                         "\033[48;5;224m\033[30m"};
  size_t color = 0;
  for (const int32_t id : ids) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    const std::string text = shown_token(bytes);
    if (!colors) {
      std::printf("%7d  %s%s\n", id, text.c_str(), tokenizer.is_special(id) ? "  (special)" : "");
      continue;
    }
    std::printf("%s%s\033[0m", tokenizer.is_special(id) ? "\033[7m" : backgrounds[color++ % 4], text.c_str());
    if (bytes.ends_with('\n')) std::printf("\n");
  }
  if (colors) {
    std::printf("\n");
    for (const int32_t id : ids) std::printf("%d ", id);
    std::printf("\n");
  }
  std::fprintf(stderr, "%zu tokens\n", ids.size());
}

std::string tokenized_line(Encoder& encoder, const std::string& line, const std::string& path, int64_t number,
                           int64_t begin) {
  const nlohmann::json in = io::parse_json(line, path, begin);
  const bool earlier = encoder.field.empty() && in.is_object() && !in.contains("text") && in.contains("t");
  const std::string field = earlier ? "t" : encoder.field.empty() ? "text" : encoder.field;
  check(in.is_object() && in.contains(field) && in[field].is_string(), ErrorKind::input, [&] {
    return str("bad line ", number, " in ", path, ": expected {\"", field, "\": text}, found ", preview(line),
               encoder.field.empty() ? "; --text-field names another field" : "");
  });
  const std::vector<int32_t> ids = encoder(in[field].get_ref<const std::string&>());
  const Tokenizer& tokenizer = encoder.tokenizer;
  const ordered_json out = {{"ids", ids}, {"d", tokenizer.decode(ids)}, {"ds", tokenizer.decode(ids, true)}};
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void tokenize_lines(Encoder& encoder, const std::string& in, const std::string& out) {
  struct Line {
    std::string text;
    int64_t number, begin;
  };
  io::LineReader reader(in);
  io::AtomicFile file(out);
  int64_t lines = 0;
  for (bool more = true; more;) {
    std::vector<Line> batch;
    for (size_t bytes = 0; bytes < (8 << 20) && (more = reader.next()); bytes += reader.text().size() + 1)
      if (!trim(reader.text()).empty()) batch.push_back({reader.text(), reader.number(), reader.begin()});
    std::vector<std::string> results(batch.size());
    parallel_for(static_cast<int64_t>(batch.size()), 8, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        results[i] = tokenized_line(encoder, batch[i].text, in, batch[i].number, batch[i].begin);
    });
    for (const std::string& result : results) file.write(result);
    lines += static_cast<int64_t>(batch.size());
  }
  file.commit();
  std::printf("%lld lines in %s\n", static_cast<long long>(lines), out.c_str());
}

int run_tokenize(const Arguments& arguments) {
  const bool text = arguments.has("TEXT");
  const std::vector<std::string> files = arguments.list("jsonl");
  check(text + arguments.has("file") + arguments.has("jsonl") <= 1, ErrorKind::setting,
        "expected one of TEXT, --file and --jsonl, found several");
  if (const int64_t n = arguments.get_int("threads"); n > 0) set_threads(static_cast<int>(n));
  const auto tokenizer = models::text::load_tokenizer(tokenizer_path(arguments.get("TOKENIZER")));
  for (const std::string& note : tokenizer->notes()) std::fprintf(stderr, "note: %s\n", note.c_str());
  Encoder encoder{*tokenizer, arguments.has("special"), arguments.has("as-text"),
                  arguments.has("text-field") ? arguments.get("text-field") : ""};
  check(!files.empty() || encoder.field.empty(), ErrorKind::setting,
        "--text-field names the field of the lines of --jsonl: expected --jsonl IN OUT beside it");
  if (!files.empty()) {
    check_output_name("--jsonl", files[1], {files[0]});
    tokenize_lines(encoder, files[0], files[1]);
  } else {
    const std::string file = arguments.has("file") ? arguments.get("file") : "-";
    print_tokens(*tokenizer, encoder(text ? arguments.get("TEXT") : read_whole_text(file)));
  }
  if (arguments.has("stats")) encoder.print_rate();
  return 0;
}

}  // namespace

Command tokenize_command() {
  return {
      .name = "tokenize",
      .summary = "show how a tokenizer cuts text, or tokenize a JSONL file",
      .positionals = {{.name = "TOKENIZER",
                       .help =
                           "tokenizer.json, or a folder with one: of a model, of data, a run (its newest checkpoint)"},
                      {.name = "TEXT", .help = "text to show; without it standard input is read", .required = false}},
      .flags =
          {{.name = "file", .alias = 'f', .value = "FILE", .help = "show the text of a file; - is standard input"},
           value_flag(
               "jsonl", "IN OUT",
               "tokenize every line {\"text\": text} of IN; OUT gets its ids, their text, and that without specials"),
           value_flag("text-field", "NAME",
                      "field of the lines of --jsonl that holds the text (default: text, or t where there is none)"),
           {.name = "special", .help = "add the tokens of the tokenizer's template, such as a beginning of text"},
           {.name = "as-text", .help = "take special tokens in the text as text"},
           {.name = "stats", .help = "print bytes, tokens and the speed of encoding to stderr"},
           integer_flag("threads", "N", "CPU threads, 0 = all that the process may use", "0", 0, 4096)},
      .details =
          "On a terminal every token has a background color, and the ids stand below. Elsewhere each token is a line: "
          "id, text.\nText that is not UTF-8 is read with U+FFFD in place of the bytes that are not. A line of OUT is\n"
          "{\"ids\": [..], \"d\": decoded, \"ds\": decoded without specials}; lines keep their order.",
      .examples = {"braid tokenize pythia-70m 'A few words'", "braid tokenize tokenizer.json --file README.md",
                   "braid tokenize tokenizer.json --jsonl texts.jsonl ids.jsonl --special"},
      .run = run_tokenize};
}

}  // namespace braid::apps
