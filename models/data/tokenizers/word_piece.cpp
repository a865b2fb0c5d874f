#include "braid/models/data/tokenizers/word_piece.h"

#include <algorithm>

#include "braid/models/data/tokenizers/bpe.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/error.h"

namespace braid::models::text {

WordPiece::WordPiece(const Section& section, bool byte_level) : whole_(section.text("type") == "WordLevel") {
  if (byte_level) section.unsupported(section.text("type") + " behind ByteLevel");
  const Section vocabulary = section.at("vocab");
  if (!vocabulary.value().is_object()) section.fail("vocab", "an object");
  for (const auto& [token, id] : vocabulary.value().items()) {
    if (!id.is_number_integer() || id < 0 || id > Bpe::max_id)
      vocabulary.fail(token, str("an id from 0 to ", Bpe::max_id), id.dump());
    const auto entry = ids_.emplace(token, id.get<int32_t>()).first;
    if (entry->second >= id_limit()) tokens_.resize(static_cast<size_t>(entry->second) + 1);
    const std::string*& place = tokens_[static_cast<size_t>(entry->second)];
    if (place) section.fail("vocab", "one token with id " + id.dump(), "'" + *place + "' and '" + token + "'");
    place = &entry->first;
  }
  const std::string unk = section.text("unk_token");
  unk_ = id_of(unk);
  if (unk_ < 0) section.fail("unk_token", "an entry of the vocabulary");
  if (whole_) return;
  prefix_ = section.text("continuing_subword_prefix", "##");
  longest_ = section.has("max_input_chars_per_word") ? section.integer("max_input_chars_per_word", 0, 1000) : 100;
}

int32_t WordPiece::id_of(std::string_view token) const {
  const auto at = ids_.find(std::string(token));
  return at == ids_.end() ? -1 : at->second;
}

const std::string* WordPiece::token(int32_t id) const {
  return id >= 0 && id < id_limit() ? tokens_[static_cast<size_t>(id)] : nullptr;
}

void WordPiece::encode(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const {
  if (whole_) {
    const int32_t id = id_of(word);
    ids.push_back(id >= 0 ? id : unk_);
    return;
  }
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const size_t before = ids.size();
  const bool too_long = std::ranges::count_if(word, begins) > longest_;
  for (size_t at = 0; at < word.size() && !too_long;) {
    scratch.piece = at > 0 ? prefix_ : "";
    scratch.piece += word.substr(at);
    int32_t id = id_of(scratch.piece);
    const size_t least = scratch.piece.size() - (word.size() - at);
    while (id < 0 && scratch.piece.size() > least) {
      ++scratch.steps;
      size_t end = scratch.piece.size();
      previous_code_point(scratch.piece, end);
      scratch.piece.resize(end);
      if (end > least) id = id_of(scratch.piece);
    }
    if (id < 0) {
      ids.resize(before);
      break;
    }
    ids.push_back(id);
    at += scratch.piece.size() - least;
  }
  if (ids.size() == before) ids.push_back(unk_);
}

}  // namespace braid::models::text
