// braid inspect: what a data folder holds, and what training reads from it.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "apps/cli/commands.h"
#include "apps/cli/text.h"
#include "apps/inspect_checkpoint.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/run_data.h"
#include "braid/models/data/sampler.h"
#include "braid/models/data/text/preference_data.h"
#include "braid/models/data/vision/manifest.h"
#include "braid/models/families/seq2seq/pairs.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

using models::text::Dataset, models::text::Sequence, models::text::Split, models::text::Tokenizer;

constexpr int64_t kLongest = int64_t{1} << 31;
constexpr int64_t kDefaultLength = 128;  // of the sequences of --batch where no setting gives one

// Tokens as text: those that are counted stand out, specials too. Colors on a terminal, brackets elsewhere.
class TokenText {
 public:
  explicit TokenText(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), colors_(::isatty(STDOUT_FILENO) != 0 && !std::getenv("NO_COLOR")) {}

  // counted: of each token, or empty where no distinction is to be seen.
  std::string operator()(std::span<const int32_t> tokens, const std::vector<bool>& counted) const {
    std::string text;
    for (size_t begin = 0, end; begin < tokens.size(); begin = end) {
      const auto kind = [&](size_t i) { return tokenizer_.is_special(tokens[i]) + (is_counted(counted, i) ? 2 : 0); };
      for (end = begin + 1; end < tokens.size() && kind(end) == kind(begin);) ++end;
      const std::string part = printable(tokenizer_.decode(tokens.subspan(begin, end - begin)));
      const bool special = kind(begin) & 1, marked = kind(begin) & 2;
      if (colors_)
        text += str(marked ? "\033[32m" : "\033[0m", special ? "\033[7m" : "", part, "\033[0m");
      else
        text += (marked && !was_marked(counted, begin) ? "[" : "") + part +
                (marked && !(end < tokens.size() && is_counted(counted, end)) ? "]" : "");
    }
    return text;
  }

 private:
  static bool is_counted(const std::vector<bool>& counted, size_t i) { return i < counted.size() && counted[i]; }
  static bool was_marked(const std::vector<bool>& counted, size_t i) { return i > 0 && is_counted(counted, i - 1); }

  const Tokenizer& tokenizer_;
  bool colors_;
};

std::string share(int64_t part, int64_t whole) {
  return whole > 0 ? human(100 * static_cast<double>(part) / static_cast<double>(whole), 3) + "%" : "none";
}

// ---- what the folder holds ----

// Lengths by powers of two, special tokens and counted targets of a split.
struct SplitStatistics {
  std::map<int, int64_t> lengths;  // documents with 2^k to 2^(k+1) - 1 tokens
  std::map<int32_t, int64_t> specials;
  int64_t documents = 0, shortest = INT64_MAX, longest = 0, tokens = 0, counted = 0;

  void add(const Tokenizer& tokenizer, int32_t id, bool is_counted) {
    ++tokens, counted += is_counted;
    if (tokenizer.is_special(id)) ++specials[id];
  }
  void end_document(int64_t length) {
    ++documents;
    ++lengths[std::bit_width(static_cast<uint64_t>(length)) - 1];
    shortest = std::min(shortest, length), longest = std::max(longest, length);
  }
};

// Calls token(id, counted) for the tokens of a split in order and end() behind each document: a sample, or text up to
// its <|endoftext|>.
template <class Token, class End>
void walk(const Dataset& data, Token&& token, End&& end) {
  constexpr int64_t at_once = 1 << 16;
  std::vector<int32_t> tokens, marks;
  bool open = false;  // a document
  for (int64_t first = 0; first < data.tokens(); first += at_once) {
    tokens.resize(static_cast<size_t>(std::min(at_once, data.tokens() - first)));
    data.read(first, tokens);
    marks.assign(tokens.size(), 0);
    if (data.has_samples()) data.read_marks(first, marks);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (open && (marks[i] & models::text::kFirstMark)) end();
      token(tokens[i], (marks[i] & models::text::kCountedMark) != 0);
      open = data.has_samples() || tokens[i] != data.tokenizer().eos_id();
      if (!open) end();
    }
  }
  if (open) end();
}

void print_lengths(const SplitStatistics& s, const char* noun) {
  std::printf("tokens of a %s: %lld to %lld, %s on average\n", noun, static_cast<long long>(s.shortest),
              static_cast<long long>(s.longest),
              human(static_cast<double>(s.tokens) / static_cast<double>(s.documents), 3).c_str());
  int64_t max = 1;
  for (const auto& [k, n] : s.lengths) max = std::max(max, n);
  for (int k = s.lengths.begin()->first; k <= s.lengths.rbegin()->first; ++k) {
    const int64_t n = s.lengths.contains(k) ? s.lengths.at(k) : 0;
    std::printf("  %8lld to %-8lld %10lld  %s\n", static_cast<long long>(int64_t{1} << k),
                static_cast<long long>((int64_t{1} << (k + 1)) - 1), static_cast<long long>(n),
                std::string(static_cast<size_t>((n * 40 + max - 1) / max), '#').c_str());
  }
}

void print_images(const std::string& folder) {
  const models::vision::ImageManifest m = models::vision::read_image_manifest(folder);
  std::printf("%s: images of %lld x %lld with %lld channels, fingerprint %s\n", folder.c_str(),
              static_cast<long long>(m.height), static_cast<long long>(m.width), static_cast<long long>(m.channels),
              m.fingerprint.c_str());
  for (const auto& [label, info] : {std::pair{"training", &m.train}, {"validation", &m.val}})
    std::printf("  %-12s %12lld images, %zu shards\n", label, static_cast<long long>(info->documents),
                info->shards.size());
  std::printf("%zu classes\n", m.classes.size());
  for (size_t i = 0; i < m.classes.size(); ++i) std::printf("  %5zu  %s\n", i, printable(m.classes[i]).c_str());
}

void print_folder(const Arguments& arguments, const std::string& folder) {
  if (models::vision::holds_images(folder)) return print_images(folder);
  const models::text::Manifest m = models::text::read_manifest(folder);
  const char* noun = m.samples ? "sample" : "document";
  const Split split = arguments.get("split") == "val" ? Split::val : Split::train;
  const models::text::SplitInfo& files = split == Split::val ? m.val : m.train;
  const int64_t first = arguments.get_int("first"), last = first + arguments.get_int("documents") - 1;
  check(first == 1 || first <= files.documents, ErrorKind::setting, [&] {
    return str("bad value for --first: expected at most ", files.documents, ", the ", noun, "s of the ", name(split),
               " split, found ", first);
  });
  std::printf("%s: %ss, fingerprint %s, tokenizer %s with %lld ids\n", folder.c_str(), noun, m.fingerprint.c_str(),
              m.tokenizer.c_str(), static_cast<long long>(m.vocab_size));
  for (const auto& [label, info] : {std::pair{"training", &m.train}, {"validation", &m.val}})
    std::printf("  %-12s %12lld tokens in %lld %ss, %zu shards\n", label, static_cast<long long>(info->tokens),
                static_cast<long long>(info->documents), noun, info->shards.size());
  if (m.samples && !m.samples->turn.empty())
    std::printf("  turns        %s\n", printable(m.samples->turn, "\\n").c_str());
  if (m.samples && !m.samples->folder.empty())
    std::printf("  turns        by the chat template of the tokenizer's folder\n");
  if (files.tokens < 2) return;
  const Dataset data(folder, split, m.samples ? kLongest : 1);
  const TokenText text(data.tokenizer());
  SplitStatistics s;
  std::vector<std::string> shown;
  const auto max = static_cast<size_t>(arguments.get_int("tokens"));
  std::vector<int32_t> beginning;  // of the document at hand
  std::vector<bool> counted;
  int64_t length = 0;
  walk(
      data,
      [&](int32_t id, bool is_counted) {
        s.add(data.tokenizer(), id, is_counted);
        ++length;
        if (beginning.size() == max) return;
        beginning.push_back(id), counted.push_back(is_counted && m.samples.has_value());
      },
      [&] {
        s.end_document(length);
        if (s.documents >= first && s.documents <= last)
          shown.push_back(str(noun, " ", s.documents, ", ", length, " tokens\n", text(beginning, counted),
                              length > std::ssize(beginning) ? " ..." : "", "\n"));
        length = 0, beginning.clear(), counted.clear();
      });
  std::printf("\nthe %s split, %s\n", name(split), folder.c_str());
  print_lengths(s, noun);
  for (const auto& [id, n] : s.specials)
    std::printf("special token %d %s: %lld times\n", id,
                printable(std::string(data.tokenizer().token_bytes(id)), "\\n").c_str(), static_cast<long long>(n));
  if (m.samples) std::printf("%s of the tokens are targets\n", share(s.counted, s.tokens).c_str());
  for (const std::string& one : shown) std::printf("\n%s", one.c_str());
}

// ---- what training reads ----

void print_table(const Tokenizer& tokenizer, const Sequence& s) {
  const auto text = [&](int32_t id) { return printable(std::string(tokenizer.token_bytes(id)), "\\n"); };
  std::printf("  token  position      id  text  ->  target\n");
  for (size_t t = 0; t < s.ids.size(); ++t)
    std::printf("  %5zu  %8lld  %6d  %s  ->  %s\n", t,
                static_cast<long long>(s.positions.empty() ? static_cast<int64_t>(t) : s.positions[t]), s.ids[t],
                text(s.ids[t]).c_str(), s.targets[t] >= 0 ? text(s.targets[t]).c_str() : "(not counted)");
}

void print_sequence(const Tokenizer& tokenizer, const Sequence& s, bool all_counted) {
  const TokenText text(tokenizer);
  const size_t T = s.ids.size();
  size_t documents = 0;
  for (size_t begin = 0, end; begin < T; begin = end) {
    // Where joined samples meet, a target is not the token behind it.
    const auto meet = [&](size_t t) { return s.targets[t - 1] >= 0 && s.targets[t - 1] != s.ids[t]; };
    for (end = begin + 1; end < T && !meet(end) && (s.positions.empty() || s.positions[end] != 0);) ++end;
    const auto padding = [&](size_t i) { return s.ids[i] == tokenizer.pad_id() && s.targets[i] < 0; };
    size_t used = end;  // without the padding behind
    while (used > begin && padding(used - 1)) --used;
    if (used > begin) {
      std::vector<bool> counted;
      for (size_t t = begin; t < used && !all_counted; ++t) counted.push_back(t > begin && s.targets[t - 1] >= 0);
      if (!s.positions.empty()) std::printf("  document %zu, tokens %zu to %zu\n", ++documents, begin, used - 1);
      std::printf("%s", text(std::span(s.ids).subspan(begin, used - begin), counted).c_str());
      const int32_t next = s.targets[used - 1];
      if (next >= 0) {
        const std::vector<int32_t> one{next};
        std::printf("  and then %s", text(one, {true}).c_str());
      }
      std::printf("\n");
    }
    if (used < end) std::printf("  %zu tokens of padding\n", end - used);
  }
}

// The number of the first sample of the micro-batch, from 0.
int64_t first_of_batch(const Arguments& arguments, int64_t B) {
  const int64_t number = arguments.get_int("batch"), most = (int64_t{1} << 52) / B;
  check(number <= most, ErrorKind::setting, [&] {
    return str("bad value for --batch: expected at most ", most, " with train.batch_size = ", B, ", found ", number);
  });
  return (number - 1) * B;
}

// earlier: sequences of other lengths that the run has read before.
void print_batch(const Arguments& arguments, const TrainConfig& config, models::text::MixedOrder order,
                 const std::vector<models::EarlierLength>& earlier) {
  const std::vector<DataSource> sources = data_sources(config);
  const int64_t B = config.train.batch_size, first = first_of_batch(arguments, B), T = order.seq_len();
  int64_t read = 0;
  for (const models::EarlierLength& e : earlier) read += e.sequences;
  check(first >= read, ErrorKind::setting, [&] {
    return str("bad value for --batch: the run read the first ", read, " sequences at another data.seq_len: expected ",
               "at least ", (read + B - 1) / B + 1, " with train.batch_size = ", B, ", found ",
               arguments.get_int("batch"));
  });
  if (!earlier.empty()) order.continue_after(earlier);
  const int64_t epoch = earlier.empty() ? first / order.size() : static_cast<int64_t>(order.epochs(first)[0]);
  std::printf(
      "micro-batch %lld of the order of run.seed = %lld: %lld of %lld sequences of %lld tokens, epoch %lld, "
      "places %lld to %lld\n",
      static_cast<long long>(arguments.get_int("batch")), static_cast<long long>(config.run.seed),
      static_cast<long long>(B), static_cast<long long>(order.size()), static_cast<long long>(T),
      static_cast<long long>(epoch + 1), static_cast<long long>(first + 1), static_cast<long long>(first + B));
  for (int64_t i = 0; i < order.sources(); ++i)
    if (const std::string words = words_about_samples(order.data(i), config); !words.empty())
      std::printf("%s\n", words.c_str());
  for (const auto& [from, number, source] : order.places(first, B)) {
    const Dataset& data = *from;
    const Sequence s = data.sequence(number);
    const int64_t counted = T - std::count_if(s.targets.begin(), s.targets.end(), [](int32_t t) { return t < 0; });
    const std::string of = sources.empty() ? "" : " of " + sources[static_cast<size_t>(source)].name;
    std::printf("\nsequence %lld%s: %lld of %lld targets are counted, %s\n", static_cast<long long>(number), of.c_str(),
                static_cast<long long>(counted), static_cast<long long>(T),
                data.separates_documents() ? "attention within documents" : "attention across documents");
    if (arguments.has("table"))
      print_table(data.tokenizer(), s);
    else
      print_sequence(data.tokenizer(), s, counted == T);
  }
}

// The same of preferences.
void print_pairs(const Arguments& arguments, const TrainConfig& config, const models::text::PreferenceData& data) {
  const int64_t B = config.train.batch_size, first = first_of_batch(arguments, B);
  const models::text::Sampler order(data.size(), static_cast<uint64_t>(config.run.seed));
  const Dataset& sequences = data.sequences();
  std::printf(
      "micro-batch %lld of the order of run.seed = %lld: %lld of %lld pairs of sequences of %lld tokens, "
      "places %lld to %lld\n",
      static_cast<long long>(arguments.get_int("batch")), static_cast<long long>(config.run.seed),
      static_cast<long long>(B), static_cast<long long>(data.size()), static_cast<long long>(sequences.seq_len()),
      static_cast<long long>(first + 1), static_cast<long long>(first + B));
  for (int64_t place = first; place < first + B; ++place) {
    const int64_t pair = order.at(place), chosen = data.first_sequence(pair);
    for (const auto& [what, number] : {std::pair{"chosen", chosen}, {"rejected", chosen + 1}}) {
      std::printf("\npair %lld, %s\n", static_cast<long long>(pair), what);
      const Sequence s = sequences.sequence(number);
      if (arguments.has("table"))
        print_table(sequences.tokenizer(), s);
      else
        print_sequence(sequences.tokenizer(), s, false);
    }
  }
}

int run_inspect(const Arguments& arguments) {
  TrainConfig config;
  const Schema schema = train_schema(config, model_settings());
  const std::string given = arguments.get("DATA");
  const bool file = given.ends_with(".toml");
  if (!file && holds_checkpoints(given)) {
    for (const char* flag : {"split", "documents", "first", "tokens", "batch", "table"})
      check(!arguments.has(flag), ErrorKind::setting, [&] {
        return str("--", flag, " is for the data of a run: expected its settings, RUN/config.resolved.toml");
      });
    check(arguments.overrides().empty(), ErrorKind::setting,
          "settings are for the data of a run: expected RUN/config.resolved.toml and --batch N beside them");
    inspect_checkpoint(given);
    return 0;
  }
  load_config(schema, file ? given : "", arguments.overrides());
  if (!file) config.data.path = given;
  check(arguments.has("batch") || (!arguments.has("table") && arguments.overrides().empty()), ErrorKind::setting,
        "--table and settings are for the batches of a run: expected --batch N beside them");
  check(names_data(config), ErrorKind::setting,
        [&] { return given + " sets no data.path: expected a data folder, or the settings of a run"; });
  check(!models::PairTask::of_path(config.data.path), ErrorKind::setting,
        [&] { return config.data.path + " is built in: expected a data folder, or the settings of a run on one"; });
  if (!arguments.has("batch")) {
    for (const std::string& folder : data_folders(config)) print_folder(arguments, folder);
    return 0;
  }
  for (const std::string& folder : data_folders(config))
    check(!models::vision::holds_images(folder), ErrorKind::setting,
          [&] { return "--batch is for text: " + folder + " holds images"; });
  vocabulary_of(config);  // is it a data folder?
  if (!file && config.data.seq_len == 0) config.data.seq_len = kDefaultLength;
  if (holds_preferences(config)) {
    const int64_t T = file ? sequence_length_of_data(config) : config.data.seq_len;
    print_pairs(arguments, config, {config.data.path, Split::train, T, config.data.long_samples == "cut"});
    return 0;
  }
  models::text::MixedOrder order =
      file
          ? training_order(config)
          : models::text::MixedOrder(Dataset(given, Split::train, config.data.seq_len, sequence_options(config, given)),
                                     static_cast<uint64_t>(config.run.seed));
  models::RunState state;
  if (file) state = newest_readable_state((std::filesystem::path(".") / given).parent_path());
  const int64_t T = order.seq_len();
  print_batch(arguments, config, std::move(order), models::with_length(state, T).earlier);
  return 0;
}

}  // namespace

Command inspect_command() {
  return {
      .name = "inspect",
      .summary = "show what a data folder, a run or a checkpoint holds and what training reads",
      .positionals =
          {{.name = "DATA",
            .help =
                "folder that braid prepare wrote, settings of a run (RUN/config.resolved.toml), run or checkpoint"}},
      .flags = {value_flag("split", "NAME", "split to read", "train", models::one_of({"train", "val"})),
                integer_flag("documents", "N", "documents or samples to show", "3", 0, 1e6),
                integer_flag("first", "N", "the first of them, from 1", "1", 1),
                integer_flag("tokens", "N", "most tokens to show of each", "200", 1, 1e9),
                integer_flag("batch", "N", "show the N-th micro-batch of the order of a run, from 1", "", 1, 1e12),
                {.name = "table", .help = "with --batch: a line for each token with its position, id and target"}},
      .overrides =
          "with --batch: settings of braid train, such as data.seq_len, train.batch_size, run.seed, "
          "data.documents, data.packing",
      .details =
          "Lengths are counted in tokens, with the end of a document. Text that counts as a target is green on a\n"
          "terminal and in [brackets] elsewhere, where not all of it does; specials stand in reverse on a terminal.\n"
          "--batch shows the same sequences as training with the same settings, in the same order: the first of\n"
          "process 1 and so on when several processes share a micro-batch. Without data.seq_len and without the\n"
          "settings of a run sequences have 128 tokens. Of RUN/config.resolved.toml it is the order of that run,\n"
          "also after a change of data.seq_len. N counts in the present train.batch_size, though the run may have had\n"
          "others; at place P is what it reads after P - 1 sequences: train.batch_size=1 --batch P.",
      .examples = {"braid inspect data/books", "braid inspect data/chats --documents 5 --first 100",
                   "braid inspect out/run/config.resolved.toml --batch 3",
                   "braid inspect data/chats --batch 1 data.seq_len=256 data.packing=in_order --table",
                   "braid inspect out/run", "braid inspect out/run/step-00001000"},
      .run = run_inspect,
  };
}

}  // namespace braid::apps
