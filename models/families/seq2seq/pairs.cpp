#include "braid/models/families/seq2seq/pairs.h"

#include <algorithm>
#include <chrono>

#include "braid/models/data/random_stream.h"
#include "braid/models/settings.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"

namespace braid::models {

namespace {

constexpr std::string_view kCharacters = " ,-./0123456789abcdefghijklmnopqrstuvwxyz";
constexpr int32_t kFirstCharacter = 3;
static_assert(kFirstCharacter + std::ssize(kCharacters) == kPairVocabulary);

constexpr const char* kMonths[] = {"january", "february", "march",     "april",   "may",      "june",
                                   "july",    "august",   "september", "october", "november", "december"};
constexpr const char* kWeekdays[] = {"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"};

std::string two_digits(int64_t n) { return str(n < 10 ? "0" : "", n); }

std::string ordinal(int64_t n) {
  const bool teens = n % 100 / 10 == 1;
  const char* end = teens ? "th" : n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
  return str(n, end);
}

// A day from 1950 to 2049, so that two digits of the year say which one, in one of eight forms.
Pair dates(RandomStream stream) {
  using namespace std::chrono;
  constexpr sys_days first = year{1950} / January / 1, last = year{2050} / January / 1;
  const sys_days day = first + days(stream.below_by_remainder((last - first).count()));
  const year_month_day date(day);
  const int64_t y = static_cast<int>(date.year()), d = static_cast<unsigned>(date.day());
  const int64_t m = static_cast<unsigned>(date.month());
  const std::string month = kMonths[m - 1], full_year = std::to_string(y), short_year = two_digits(y % 100);
  const auto of_year = (day - sys_days(date.year() / January / 1)).count() + 1;
  std::string source;
  switch (stream.below_by_remainder(8)) {
    case 0:
      source = str(kWeekdays[weekday(day).c_encoding()], ", the ", ordinal(d), " of ", month, " ", full_year);
      break;
    case 1:
      source = str(month, " ", d, ", ", full_year);
      break;
    case 2:
      source = str(d, " ", month.substr(0, 3), " ", short_year);
      break;
    case 3:
      source = str(d, ".", m, ".", short_year);
      break;
    case 4:  // the month in front
      source = str(m, "/", d, "/", full_year);
      break;
    case 5:
      source = "the " + ordinal(d) + " of " + month + ", " + short_year;
      break;
    default:  // twice as often: it needs the lengths of the months
      source = str("day ", of_year, " of ", full_year);
  }
  return {source, full_year + "-" + two_digits(m) + "-" + two_digits(d)};
}

std::string letters(RandomStream stream) {
  std::string text(static_cast<size_t>(8 + stream.below_by_remainder(9)), ' ');
  for (char& c : text) c = static_cast<char>('a' + stream.below_by_remainder(26));
  return text;
}
Pair sorted(RandomStream stream) {
  const std::string text = letters(stream);
  std::string target = text;
  std::sort(target.begin(), target.end());
  return {text, target};
}
Pair reversed(RandomStream stream) {
  const std::string text = letters(stream);
  return {text, {text.rbegin(), text.rend()}};
}

struct Kind {
  const char* name;
  Pair (*draw)(RandomStream);
  int64_t source, target;  // most characters
};
constexpr Kind kKinds[] = {{"dates", dates, 37, 10}, {"sort", sorted, 16, 16}, {"reverse", reversed, 16, 16}};

const Kind& kind_of(const std::string& name) {
  for (const Kind& kind : kKinds)
    if (name == kind.name) return kind;
  fail(ErrorKind::setting,
       bad_value(str(kPairsPrefix, "NAME"), one_of(pair_task_names()), "'" + detail::preview(name) + "'", name));
}

// One answer of twenty is kept for validation.
bool is_held_out(const std::string& target) { return io::crc32c(target.data(), std::ssize(target)) % 20 == 0; }

void append(std::vector<int32_t>& ids, const std::string& text) {
  for (const char c : text) ids.push_back(kFirstCharacter + static_cast<int32_t>(kCharacters.find(c)));
}

}  // namespace

std::vector<std::string> pair_task_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

PairTask::PairTask(const std::string& name) : name_(name) {
  const Kind& kind = kind_of(name);
  source_length_ = kind.source + 1, target_length_ = kind.target + 1;
}

std::optional<PairTask> PairTask::of_path(const std::string& path) {
  if (!path.starts_with(kPairsPrefix)) return std::nullopt;
  return PairTask(path.substr(std::string_view(kPairsPrefix).size()));
}

Pair PairTask::candidate(RandomKey key) const { return kind_of(name_).draw(RandomStream(key)); }

Pair PairTask::pair(text::Split split, int64_t index) const {
  const bool held_out = split == text::Split::val;
  const RandomKey of_split = child(child(RandomKey{}, name_.c_str()), held_out ? "val" : "train");
  const RandomKey key = child(of_split, index);
  for (uint64_t attempt = 0;; ++attempt) {  // 20 on average for validation
    Pair pair = candidate(child(key, attempt));
    if (is_held_out(pair.target) == held_out) return pair;
  }
}

std::string PairTask::fingerprint() const {
  std::string text = name_;
  for (const text::Split split : {text::Split::train, text::Split::val}) {
    text += str(" ", size(split));
    for (int64_t i = 0; i < 64; ++i) {
      const Pair p = pair(split, i);
      text += "\n" + p.source + "\t" + p.target;
    }
  }
  const uint64_t first = io::crc32c(text.data(), std::ssize(text));
  std::reverse(text.begin(), text.end());
  return detail::hex(first << 32 | io::crc32c(text.data(), std::ssize(text)), 16);
}

std::vector<int32_t> encode_source(const std::string& source, int64_t length) {
  const size_t bad = source.find_first_not_of(kCharacters);
  check(bad == std::string::npos, ErrorKind::input, [&] {
    return str("a source has the character '", detail::preview(source.substr(bad, 1)), "': expected only ",
               kCharacters.substr(1), " and spaces");
  });
  check(std::ssize(source) < length, ErrorKind::input, [&] {
    return str("a source is too long: expected at most ", length - 1, " characters, found ", source.size());
  });
  std::vector<int32_t> ids;
  append(ids, source);
  ids.push_back(kPairEnd);
  ids.resize(static_cast<size_t>(length), kPairFill);
  return ids;
}

Tensor source_lengths_of(const Tensor& source_ids) {
  const std::vector<int64_t> ids = source_ids.to_vector<int64_t>();
  const int64_t B = source_ids.dim(0), S = source_ids.dim(1);
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < B; ++b) {
    const auto row = ids.begin() + b * S;
    lengths.push_back(std::min(S, std::find(row, row + S, kPairEnd) - row + 1));
  }
  return from_vector(lengths, {B});
}

std::string decode_symbols(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) {
    if (id == kPairEnd) break;
    if (id >= kFirstCharacter && id < kPairVocabulary) text += kCharacters[static_cast<size_t>(id - kFirstCharacter)];
  }
  return text;
}

Batch pair_batch(const PairTask& task, text::Split split, const std::vector<int64_t>& indices) {
  const int64_t B = std::ssize(indices), S = task.source_length(), T = task.target_length();
  std::vector<int32_t> sources, inputs, targets;
  for (const int64_t index : indices) {
    const Pair pair = task.pair(split, index);
    const std::vector<int32_t> source = encode_source(pair.source, S);
    sources.insert(sources.end(), source.begin(), source.end());
    std::vector<int32_t> input = {kPairBegin}, target;
    append(input, pair.target), append(target, pair.target);
    target.push_back(kPairEnd);
    input.resize(static_cast<size_t>(T), kPairFill), target.resize(static_cast<size_t>(T), -1);
    inputs.insert(inputs.end(), input.begin(), input.end());
    targets.insert(targets.end(), target.begin(), target.end());
  }
  return {{"source_ids", from_vector(sources, {B, S})},
          {"input_ids", from_vector(inputs, {B, T})},
          {"targets", from_vector(targets, {B, T})}};
}

}  // namespace braid::models
