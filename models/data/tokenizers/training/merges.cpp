#include "braid/models/data/tokenizers/training/merges.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>

#include "braid/models/data/tokenizers/training/pair_table.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"
#include "braid/tensor/parallel.h"

namespace braid::models::text {
namespace {

// Words to merge in before the work is shared between threads, and in each share.
constexpr int64_t words_per_share = 8192;

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const int k = detail::utf8_prefix(text);
    check(k > 0, ErrorKind::input, [&] {
      return "cannot train on the word \"" + detail::preview(text) + "\": expected UTF-8 text, found other bytes";
    });
    all.push_back(text.substr(0, static_cast<size_t>(k)));
    text.remove_prefix(static_cast<size_t>(k));
  }
  return all;
}

// The words as symbols, in one array: a word shrinks in place when two of its symbols become one.
struct Words {
  std::vector<int32_t> symbols;
  std::vector<int32_t> lengths;  // characters of each symbol; only with a bound on them
  std::vector<int64_t> begin;
  std::vector<int32_t> size;
  std::vector<int64_t> count;
};

// Effects of one merge on the counts of pairs.
struct Changes {
  struct Pair {
    int64_t change = 0;
    std::vector<int32_t> words;  // in which the pair is new
  };
  PairTable table;
  std::vector<Pair> pairs;  // by the table's index

  Pair& operator[](uint64_t key) {
    const auto index = static_cast<size_t>(table.index(key));
    if (index == pairs.size()) pairs.emplace_back();
    return pairs[index];
  }
  void clear() { table.clear(), pairs.clear(); }
};

class Trainer {
 public:
  explicit Trainer(const BpeOptions& options) : options_(options) {}

  BpeVocabulary run(std::span<const CountedWord> words, const std::function<void(int64_t ids)>& progress) {
    for (const std::string& special : options_.special_tokens) token(special);
    add_alphabet(words);
    add_words(words);
    count_pairs();
    while (static_cast<int64_t>(vocabulary_.tokens.size()) < options_.vocab_size && merge_next()) {
      if (progress && vocabulary_.merges.size() % 128 == 0) progress(std::ssize(vocabulary_.tokens));
    }
    keep_last_places();
    return std::move(vocabulary_);
  }

 private:
  struct Entry {
    int64_t count;
    uint64_t pair;
    size_t words;  // in lists_
    bool operator<(const Entry& other) const {
      if (count != other.count) return count < other.count;
      return pair != other.pair ? pair > other.pair : words > other.words;
    }
  };

  int32_t token(const std::string& text) {
    const auto [found, added] = ids_.try_emplace(text, static_cast<int32_t>(vocabulary_.tokens.size()));
    if (added) vocabulary_.tokens.push_back(text);
    return found->second;
  }

  void add_alphabet(std::span<const CountedWord> words) {
    std::set<std::string_view> alphabet;  // the order of UTF-8 is that of code points
    std::array<bool, 128> ascii{};
    for (const CountedWord& word : words)
      for (const std::string_view c : characters(word.text))
        if (c.size() > 1 || !std::exchange(ascii[static_cast<unsigned char>(c[0])], true)) alphabet.insert(c);
    for (const std::string& text : options_.initial_alphabet)
      if (!text.empty()) alphabet.insert(characters(text).front());
    for (const std::string_view c : alphabet) token(std::string(c));
  }

  void add_words(std::span<const CountedWord> words) {
    const std::string &prefix = options_.continuing_subword_prefix, &suffix = options_.end_of_word_suffix;
    const bool affixes = !prefix.empty() || !suffix.empty();
    std::vector<size_t> order(words.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (affixes) std::ranges::sort(order, {}, [&](size_t i) { return words[i].text; });
    std::string s;
    for (const size_t i : order) {
      const CountedWord& word = words[i];
      check(word.count >= 0, ErrorKind::setting,
            [&] { return "the count of the word \"" + detail::preview(word.text) + "\" is negative"; });
      if (word.count == 0) continue;
      words_.begin.push_back(static_cast<int64_t>(words_.symbols.size()));
      const std::vector<std::string_view> all = characters(word.text);
      for (size_t c = 0; c < all.size(); ++c) {
        s = all[c];
        if (affixes) {
          if (c > 0) s.insert(0, prefix);
          if (c + 1 == all.size()) s += suffix;
        }
        words_.symbols.push_back(token(s));
      }
      words_.size.push_back(static_cast<int32_t>(all.size()));
      words_.count.push_back(word.count);
    }
    if (options_.max_token_length > 0) words_.lengths.assign(words_.symbols.size(), 1);
  }

  size_t pair_number(uint64_t key) {
    const auto number = static_cast<size_t>(pairs_.index(key));
    if (number == counts_.size()) counts_.push_back(0);
    return number;
  }

  void count_pairs() {
    std::vector<std::vector<int32_t>> where;  // by the pair's number
    for (size_t w = 0; w < words_.begin.size(); ++w) {
      const int32_t* s = words_.symbols.data() + words_.begin[w];
      for (int32_t i = 0; i + 1 < words_.size[w]; ++i) {
        const size_t number = pair_number(pair_key(s[i], s[i + 1]));
        if (number == where.size()) where.emplace_back();
        counts_[number] += words_.count[w];
        if (where[number].empty() || where[number].back() != static_cast<int32_t>(w))
          where[number].push_back(static_cast<int32_t>(w));
      }
    }
    for (size_t number = 0; number < where.size(); ++number)
      push(pairs_.key(number), counts_[number], std::move(where[number]));
  }

  void push(uint64_t pair, int64_t count, std::vector<int32_t> words) {
    if (count <= 0) return;
    size_t slot = lists_.size();
    if (free_lists_.empty()) {
      lists_.emplace_back();
    } else {
      slot = free_lists_.back();
      free_lists_.pop_back();
    }
    lists_[slot] = std::move(words);
    queue_.push({count, pair, slot});
  }

  // False when no pair is common enough.
  bool merge_next() {
    Entry top{};
    for (;;) {
      if (queue_.empty()) return false;
      top = queue_.top();
      queue_.pop();
      const int64_t now = counts_[pair_number(top.pair)];
      if (top.count == now) break;
      top.count = now;
      queue_.push(top);
    }
    if (top.count < 1 || top.count < options_.min_frequency) return false;
    const int32_t left = left_of(top.pair), right = right_of(top.pair);
    std::string_view tail = vocabulary_.tokens[static_cast<size_t>(right)];
    if (tail.starts_with(options_.continuing_subword_prefix))
      tail.remove_prefix(options_.continuing_subword_prefix.size());
    const int32_t made = token(str(vocabulary_.tokens[static_cast<size_t>(left)], tail));
    vocabulary_.merges.emplace_back(left, right);
    const std::vector<int32_t> where = std::move(lists_[top.words]);
    free_lists_.push_back(top.words);

    // Shares of the list are fixed and their effects are added in its order: threads make no difference.
    const auto n = static_cast<int64_t>(where.size());
    const int64_t shares = std::max<int64_t>(1, n / words_per_share);
    if (static_cast<int64_t>(changes_.size()) < shares) changes_.resize(static_cast<size_t>(shares));
    parallel_for(shares, 1, [&](int64_t first, int64_t last) {
      for (int64_t share = first; share < last; ++share)
        for (int64_t i = n * share / shares; i < n * (share + 1) / shares; ++i)
          merge_in(where[static_cast<size_t>(i)], left, right, made, changes_[static_cast<size_t>(share)]);
    });
    Changes& sum = changes_[0];
    for (int64_t share = 1; share < shares; ++share) {
      Changes& part = changes_[static_cast<size_t>(share)];
      for (size_t i = 0; i < part.pairs.size(); ++i) {
        Changes::Pair& to = sum[part.table.key(i)];
        to.change += part.pairs[i].change;
        to.words.insert(to.words.end(), part.pairs[i].words.begin(), part.pairs[i].words.end());
      }
      part.clear();
    }
    for (size_t i = 0; i < sum.pairs.size(); ++i) {
      const uint64_t pair = sum.table.key(i);
      const int64_t count = counts_[pair_number(pair)] += sum.pairs[i].change;
      if (!sum.pairs[i].words.empty()) push(pair, count, std::move(sum.pairs[i].words));
    }
    sum.clear();
    return true;
  }

  // Replaces the pair in one word, from the left to the right.
  void merge_in(int32_t word, int32_t left, int32_t right, int32_t made, Changes& changes) {
    const auto w = static_cast<size_t>(word);
    int32_t* const s = words_.symbols.data() + words_.begin[w];
    int32_t* const lengths = words_.lengths.empty() ? nullptr : words_.lengths.data() + words_.begin[w];
    const int32_t n = words_.size[w];
    const int64_t count = words_.count[w];
    const auto lose = [&](int32_t a, int32_t b) { changes[pair_key(a, b)].change -= count; };
    const auto win = [&](int32_t a, int32_t b, int32_t length) {
      if (lengths && length >= options_.max_token_length) return;
      Changes::Pair& pair = changes[pair_key(a, b)];
      pair.change += count;
      if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    };
    int32_t to = 0;
    for (int32_t from = 0; from < n; ++from, ++to) {
      s[to] = s[from];
      if (lengths) lengths[to] = lengths[from];
      if (s[from] != left || from + 1 == n || s[from + 1] != right) continue;
      const int32_t length = lengths ? lengths[to] += lengths[from + 1] : 0;
      s[to] = made;
      ++from;
      if (to > 0) {
        lose(s[to - 1], left);
        win(s[to - 1], made, lengths ? lengths[to - 1] + length : 0);
      }
      if (from + 1 < n) {
        lose(right, s[from + 1]);
        win(made, s[from + 1], lengths ? lengths[from + 1] + length : 0);
      }
    }
    words_.size[w] = to;
  }

  // A pair that was merged twice keeps its later place.
  void keep_last_places() {
    auto& merges = vocabulary_.merges;
    std::set<std::pair<int32_t, int32_t>> seen;
    auto kept = merges.rbegin();
    for (auto it = merges.rbegin(); it != merges.rend(); ++it)
      if (seen.insert(*it).second) *kept++ = *it;
    merges.erase(merges.begin(), kept.base());
  }

  const BpeOptions& options_;
  BpeVocabulary vocabulary_;
  std::unordered_map<std::string, int32_t> ids_;
  Words words_;
  PairTable pairs_;
  std::vector<int64_t> counts_;  // by the pair's number
  std::priority_queue<Entry> queue_;
  std::vector<std::vector<int32_t>> lists_;  // words of the entries
  std::vector<size_t> free_lists_;
  std::vector<Changes> changes_;  // one per share
};

}  // namespace

BpeVocabulary train_merges(std::span<const CountedWord> words, const BpeOptions& options,
                           const std::function<void(int64_t ids)>& progress) {
  check(options.vocab_size >= 0 && options.vocab_size <= INT32_MAX, ErrorKind::setting,
        [&] { return str("the size of the vocabulary must be 0 to 2147483647, found ", options.vocab_size); });
  check(options.min_frequency >= 0 && options.max_token_length >= 0, ErrorKind::setting,
        "the least frequency and the longest token must not be negative");
  check(words.size() <= INT32_MAX, ErrorKind::setting,
        [&] { return str("expected at most 2147483647 different words, found ", words.size()); });
  return Trainer(options).run(words, progress);
}

}  // namespace braid::models::text
