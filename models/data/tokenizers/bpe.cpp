#include "braid/models/data/tokenizers/bpe.h"

#include <algorithm>
#include <map>

#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {
constexpr uint64_t no_pair = ~uint64_t{0};
constexpr uint32_t no_rank = ~uint32_t{0};
constexpr size_t short_word = 48;  // symbols; up to here a scan is faster than a queue
constexpr std::string_view metaspace = "\u2581";

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}
}  // namespace

Bpe::Bpe(const Section& section, bool byte_level) : byte_level_(byte_level) {
  if (section.has("dropout") && section.value().at("dropout") != nlohmann::json(0.0))
    section.unsupported("dropout (random tokens)");
  fuse_unk_ = section.flag("fuse_unk", false);
  byte_fallback_ = section.flag("byte_fallback", false);
  ignore_merges_ = section.flag("ignore_merges", false);
  prefix_ = section.text("continuing_subword_prefix", "");
  suffix_ = section.text("end_of_word_suffix", "");
  read_vocabulary(section);
  read_merges(section);
  find_cut();
}

void Bpe::read_vocabulary(const Section& section) {
  const Section vocab = section.at("vocab");
  if (!vocab.value().is_object()) section.fail("vocab", "an object of tokens and ids");
  int64_t largest = -1;
  for (const auto& [token, id] : vocab.value().items()) {
    const bool fine = id.is_number_integer() && id >= 0 && id <= max_id;
    if (!fine) section.fail("vocab", str("ids from 0 to ", max_id), "'" + token + "': " + id.dump().substr(0, 20));
    largest = std::max(largest, id.get<int64_t>());
  }
  tokens_.resize(static_cast<size_t>(largest + 1));
  ids_.reserve(vocab.value().size());
  for (const auto& [token, id] : vocab.value().items()) {
    auto& place = tokens_[id.get<size_t>()];
    if (place) section.fail("vocab", "one token with id " + id.dump(), "'" + *place + "' and '" + token + "'");
    place = std::make_unique<std::string>(token);
    ids_.emplace(*place, id.get<int32_t>());
  }
  if (section.has("unk_token")) {
    const std::string unk = section.text("unk_token");
    unk_ = id_of(unk);
    if (unk_ < 0) section.fail("unk_token", "a token of the vocabulary", "'" + unk + "'");
  }
  constexpr char digits[] = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_ids_.push_back(id_of(byte_character(static_cast<unsigned char>(byte))));
    fallback_ids_.push_back(id_of(str("<0x", digits[byte >> 4], digits[byte & 15], ">")));
  }
}

void Bpe::read_merges(const Section& section) {
  const nlohmann::json& list = section.at("merges").value();
  if (!list.is_array()) section.fail("merges", "a list");
  size_t capacity = 16;
  for (shift_ = 60; capacity < 2 * list.size(); capacity *= 2) --shift_;
  merges_.assign(capacity, {no_pair, 0, 0});
  uint32_t rank = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const nlohmann::json& item = list[i];
    std::string left, right;
    const auto bad = [&](const std::string& expected) {
      section.fail(str("merges[", i, "]"), expected,
                   item.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, 60));
    };
    if (item.is_string()) {
      const std::string& text = item.get_ref<const std::string&>();
      if (text.starts_with("#version")) continue;
      const size_t blank = text.find(' ');
      if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos)
        bad("merges of two parts with one blank between");
      left = text.substr(0, blank), right = text.substr(blank + 1);
    } else if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      left = item[0].get<std::string>(), right = item[1].get<std::string>();
    } else {
      bad("merges of two parts");
    }
    if (!right.starts_with(prefix_)) bad("a right part that begins with continuing_subword_prefix '" + prefix_ + "'");
    const int32_t a = id_of(left), b = id_of(right), result = id_of(left + right.substr(prefix_.size()));
    if (a < 0 || b < 0) bad("parts of the vocabulary: '" + (a < 0 ? left : right) + "' is not in it");
    if (result < 0) bad("a result of the vocabulary: '" + left + right.substr(prefix_.size()) + "' is not in it");
    place(pair_of(a, b)) = {pair_of(a, b), rank++, result};  // of equal pairs the later counts
  }
}

// Where no merge joins a character and a U+2581 behind it, a text may be cut there: each part merges for itself. A text
// without pre-tokenizer, one word for BPE, so becomes many, most of them met before.
void Bpe::find_cut() {
  if (!prefix_.empty() || !suffix_.empty() || ignore_merges_ || byte_level_ || id_of(metaspace) < 0) return;
  for (const Merge& m : merges_) {
    if (m.pair == no_pair) continue;
    const std::string& left = *tokens_[m.pair >> 32];
    const std::string& right = *tokens_[m.pair & 0xFFFFFFFF];
    if (right.starts_with(metaspace) && !left.ends_with(metaspace)) return;
  }
  if (unk_ >= 0 && tokens_[static_cast<size_t>(unk_)]->ends_with(metaspace)) return;
  // A character without any token vanishes, and what stands around it may merge.
  const bool all_bytes = byte_fallback_ && std::ranges::all_of(fallback_ids_, [](int32_t id) { return id >= 0; });
  if (unk_ < 0 && !all_bytes) return;
  cut_ = metaspace;
}

int32_t Bpe::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

const std::string* Bpe::token(int32_t id) const {
  return id < 0 || id >= id_limit() ? nullptr : tokens_[static_cast<size_t>(id)].get();
}

Bpe::Merge& Bpe::place(uint64_t pair) {
  size_t i = (pair * 0x9E3779B97F4A7C15u) >> shift_;
  while (merges_[i].pair != no_pair && merges_[i].pair != pair) i = (i + 1) & (merges_.size() - 1);
  return merges_[i];
}

const Bpe::Merge* Bpe::merge(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  for (size_t i = (pair * 0x9E3779B97F4A7C15u) >> shift_;; i = (i + 1) & (merges_.size() - 1)) {
    if (merges_[i].pair == pair) return &merges_[i];
    if (merges_[i].pair == no_pair) return nullptr;
  }
}

void Bpe::encode(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const {
  if (cut_.empty()) return encode_cached(word, ids, scratch);
  size_t begin = 0;
  for (size_t at = cut_.size(); (at = word.find(cut_, at)) != std::string_view::npos; at += cut_.size())
    if (!word.substr(0, at).ends_with(cut_)) {
      encode_cached(word.substr(begin, at - begin), ids, scratch);
      begin = at;
    }
  encode_cached(word.substr(begin), ids, scratch);
}

void Bpe::encode_cached(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const {
  if (word.size() > WordCache::longest_word || word.empty()) return encode_word(word, ids, scratch);
  const uint64_t hash = WordCache::hash(word);
  if (scratch.cache.find(word, hash, ids)) return;
  const size_t before = ids.size();
  encode_word(word, ids, scratch);
  scratch.cache.add(word, hash, std::span(ids).subspan(before));
}

void Bpe::encode_word(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const {
  if (ignore_merges_) {
    scratch.text.clear();
    if (byte_level_) append_byte_characters(scratch.text, word);
    const int32_t whole = id_of(byte_level_ ? std::string_view(scratch.text) : word);
    if (whole >= 0) {
      ids.push_back(whole);
      return;
    }
  }
  scratch.symbols.clear();
  start_symbols(word, scratch.symbols, scratch.text);
  if (scratch.symbols.size() <= short_word)
    merge_short(scratch);
  else
    merge_long(scratch);
  ids.insert(ids.end(), scratch.symbols.begin(), scratch.symbols.end());
}

// One symbol per character, with the prefix if it is not the first and the suffix if it is the last. One that is not in
// the vocabulary: its bytes, else unk_token, else nothing.
void Bpe::start_symbols(std::string_view word, std::vector<int32_t>& symbols, std::string& buffer) const {
  bool unknown = false;  // an unk waits, so that the next one can join it
  const auto flush = [&] {
    if (unknown) symbols.push_back(unk_);
    unknown = false;
  };
  const bool plain = prefix_.empty() && suffix_.empty();
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    int32_t id = -1;
    if (byte_level_ && plain) {
      id = byte_ids_[static_cast<unsigned char>(word[at++])];
      if (id < 0) buffer = byte_character(static_cast<unsigned char>(word[begin]));
    } else {
      at += byte_level_ ? 1 : utf8_length(word[at]);
      buffer.clear();
      if (begin > 0) buffer += prefix_;
      if (byte_level_)
        buffer += byte_character(static_cast<unsigned char>(word[begin]));
      else
        buffer += word.substr(begin, at - begin);
      if (at == word.size()) buffer += suffix_;
      id = id_of(buffer);
    }
    if (id >= 0) {
      flush();
      symbols.push_back(id);
      continue;
    }
    if (byte_fallback_ && std::all_of(buffer.begin(), buffer.end(),
                                      [&](char c) { return fallback_ids_[static_cast<unsigned char>(c)] >= 0; })) {
      for (const char c : buffer) symbols.push_back(fallback_ids_[static_cast<unsigned char>(c)]);
    } else if (unk_ >= 0) {
      if (!fuse_unk_) flush();
      unknown = true;
    }
  }
  flush();
}

// The pair of lowest rank, the leftmost of several, again and again.
void Bpe::merge_short(Scratch& scratch) const {
  std::vector<int32_t>& s = scratch.symbols;
  std::vector<uint32_t>& ranks = scratch.ranks;  // of s[i] and s[i + 1]
  const auto rank = [&](size_t i) {
    ++scratch.steps;
    const Merge* m = i + 1 < s.size() ? merge(s[i], s[i + 1]) : nullptr;
    return m ? m->rank : no_rank;
  };
  ranks.clear();
  for (size_t i = 0; i < s.size(); ++i) ranks.push_back(rank(i));
  while (s.size() > 1) {
    const auto i = static_cast<size_t>(std::min_element(ranks.begin(), ranks.end()) - ranks.begin());
    if (ranks[i] == no_rank) return;
    s[i] = merge(s[i], s[i + 1])->result;
    s.erase(s.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ranks[i] = rank(i);
    if (i > 0) ranks[i - 1] = rank(i - 1);
  }
}

namespace {

// Merges to be tried, by rank and then by position: positions that arise in ascending order wait in a run of their
// rank, the others in a heap.
class Candidates {
  using Candidate = Bpe::Scratch::Candidate;
  auto later() {
    return [this](const Candidate& a, const Candidate& b) {
      ++steps_;
      return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    };
  }

 public:
  explicit Candidates(Bpe::Scratch& scratch) : steps_(scratch.steps), heap_(scratch.queue) { heap_.clear(); }

  bool empty() const { return runs_.empty() && heap_.empty(); }
  void add(const Candidate& c) {
    Run& run = runs_[c.rank];
    run.result = c.result;
    if (run.next == run.positions.size() || run.positions.back() <= c.position)
      return run.positions.push_back(c.position);
    heap_.push_back(c);
    std::push_heap(heap_.begin(), heap_.end(), later());
  }
  Candidate take() {
    if (!runs_.empty()) {
      const auto first = runs_.begin();
      Run& run = first->second;
      const Candidate candidate{first->first, run.positions[run.next], run.result};
      if (heap_.empty() || !later()(candidate, heap_.front())) {
        if (++run.next == run.positions.size()) runs_.erase(first);
        return candidate;
      }
    }
    std::pop_heap(heap_.begin(), heap_.end(), later());
    const Candidate candidate = heap_.back();
    heap_.pop_back();
    return candidate;
  }

 private:
  struct Run {
    int32_t result = 0;
    size_t next = 0;  // the first position that is not taken
    std::vector<uint32_t> positions;
  };

  int64_t& steps_;
  std::map<uint32_t, Run> runs_;  // by rank
  std::vector<Candidate>& heap_;
};

}  // namespace

// The same with a queue of (rank, position). An entry is stale when its left symbol is gone or the pair there now gives
// another token.
void Bpe::merge_long(Scratch& scratch) const {
  std::vector<Scratch::Symbol>& list = scratch.list;
  Candidates candidates(scratch);
  const auto n = static_cast<int32_t>(scratch.symbols.size());
  list.clear();
  for (int32_t i = 0; i < n; ++i)
    list.push_back({scratch.symbols[static_cast<size_t>(i)], i - 1, i + 1 < n ? i + 1 : -1});
  const auto at = [&](int32_t i) -> Scratch::Symbol& { return list[static_cast<size_t>(i)]; };
  const auto merge_at = [&](int32_t i) -> const Merge* {
    ++scratch.steps;
    return i < 0 || at(i).next < 0 ? nullptr : merge(at(i).id, at(at(i).next).id);
  };
  const auto add = [&](int32_t i) {
    if (const Merge* m = merge_at(i)) candidates.add({m->rank, static_cast<uint32_t>(i), m->result});
  };
  for (int32_t i = 0; i < n; ++i) add(i);
  while (!candidates.empty()) {
    const Scratch::Candidate best = candidates.take();
    const auto i = static_cast<int32_t>(best.position);
    const Merge* m = at(i).id < 0 ? nullptr : merge_at(i);
    if (!m || m->result != best.result) continue;
    const int32_t gone = at(i).next, after = at(gone).next;
    at(i).id = best.result, at(i).next = after;
    at(gone).id = -1;
    if (after >= 0) at(after).previous = i;
    add(at(i).previous);
    add(i);
  }
  scratch.symbols.clear();
  for (int32_t i = 0; i >= 0 && i < n; i = at(i).next) scratch.symbols.push_back(at(i).id);
}

}  // namespace braid::models::text
