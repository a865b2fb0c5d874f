// The `added_tokens` of a tokenizer.json: texts that become one id before anything else happens to the text around
// them.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/models/data/tokenizers/normalizer.h"
#include "braid/models/data/tokenizers/section.h"

namespace braid::models::text {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

// Finds the longest of several texts that begins at a place.
class Trie {
 public:
  void add(std::string_view text, int32_t value);  // a text that is there already keeps its value
  bool empty() const { return nodes_.empty(); }
  // The leftmost match not before `from`, of several the longest: [begin, end), and its value; -1: none.
  int32_t find(std::string_view text, size_t from, size_t& begin, size_t& end) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, int32_t>> next;
    int32_t value = -1;
  };
  std::vector<Node> nodes_;
  std::array<bool, 256> begins_{};  // bytes that a text begins with
};

class AddedTokens {
 public:
  // `id_of` gives a content's id in the model's vocabulary, or -1; vocabulary: number of its entries. The ids of the
  // file must be those that the package gives: that of the vocabulary, else the next free one.
  AddedTokens(const Section& root, const Normalizer& normalizer,
              const std::function<int32_t(const std::string&)>& id_of, int64_t vocabulary);

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find(int32_t id) const;  // null: no added token

  enum class Table { raw, normalized };
  bool empty(Table table) const { return trie(table).empty(); }
  // Cuts a text at its added tokens: piece(begin, end) for what lies between, token(id) for each. as_text: special ones
  // are text.
  template <typename Piece, typename Token>
  void cut(std::string_view text, Table table, bool as_text, const Piece& piece, const Token& token) const {
    size_t done = 0, from = 0, spaces = 0;
    for (Match m; next(text, table, as_text, from, done, spaces, m);) {
      if (done < m.begin) piece(done, m.begin);
      token(m.id);
      done = m.end;
    }
    if (done < text.size()) piece(done, text.size());
  }

 private:
  struct Match {
    int32_t id;
    size_t begin, end;
  };
  const Trie& trie(Table table) const { return tries_[table == Table::raw ? 0 : 1]; }
  bool next(std::string_view text, Table table, bool as_text, size_t& from, size_t done, size_t& spaces,
            Match& match) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::array<Trie, 2> tries_;
};

}  // namespace braid::models::text
