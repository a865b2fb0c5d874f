#include "braid/models/data/tokenizers/post_processor.h"

#include <algorithm>

namespace braid::models::text {

PostProcessor::PostProcessor(const Section& section) {
  if (!section.is_null()) add(section);
}

void PostProcessor::add(const Section& section) {
  const std::string type = section.type();
  if (type == "Sequence") {
    for (const Section& part : section.list("processors")) add(part);
  } else if (type == "TemplateProcessing") {
    if (found_) section.unsupported("a second TemplateProcessing");
    found_ = true;
    single_ = read(section, "single");
    pair_ = read(section, "pair");
  } else if (type != "ByteLevel") {
    section.unsupported("the post_processor '" + type + "'");
  }
}

PostProcessor::Template PostProcessor::read(const Section& section, const char* key) {
  Template pieces;
  const Section specials = section.at("special_tokens");
  for (const Section& item : section.list(key)) {
    if (item.has("Sequence")) {
      const std::string id = item.at("Sequence").text("id");
      if (id != "A" && id != "B") item.fail("Sequence.id", "A or B", id);
      pieces.push_back({id == "A" ? Piece::Kind::a : Piece::Kind::b, {}});
    } else if (item.has("SpecialToken")) {
      const std::string id = item.at("SpecialToken").text("id");
      if (!specials.has(id.c_str())) item.fail("SpecialToken.id", "a name of special_tokens", "'" + id + "'");
      const Section special = specials.at(id.c_str());
      Piece piece{Piece::Kind::specials, {}};
      for (const Section& token : special.list("ids")) {
        if (!token.value().is_number_integer() || token.value() < 0 || token.value() >= (1 << 22))
          special.fail("ids", "ids of tokens");
        piece.ids.push_back(token.value().get<int32_t>());
      }
      pieces.push_back(std::move(piece));
    } else {
      item.fail("", "a Sequence or a SpecialToken");
    }
  }
  return pieces;
}

std::vector<int32_t> PostProcessor::apply(const Template& pieces, std::span<const int32_t> a,
                                          std::span<const int32_t> b) {
  std::vector<int32_t> ids;
  for (const Piece& piece : pieces) {
    const std::span<const int32_t> part = piece.kind == Piece::Kind::a   ? a
                                          : piece.kind == Piece::Kind::b ? b
                                                                         : std::span<const int32_t>(piece.ids);
    ids.insert(ids.end(), part.begin(), part.end());
  }
  return ids;
}

std::vector<int32_t> PostProcessor::single(std::span<const int32_t> a) const {
  return found_ ? apply(single_, a, {}) : std::vector<int32_t>(a.begin(), a.end());
}

std::vector<int32_t> PostProcessor::pair(std::span<const int32_t> a, std::span<const int32_t> b) const {
  if (found_) return apply(pair_, a, b);
  std::vector<int32_t> ids(a.begin(), a.end());
  ids.insert(ids.end(), b.begin(), b.end());
  return ids;
}

int32_t PostProcessor::largest_id() const {
  int32_t largest = -1;
  for (const Template* pieces : {&single_, &pair_})
    for (const Piece& piece : *pieces)
      for (const int32_t id : piece.ids) largest = std::max(largest, id);
  return largest;
}

}  // namespace braid::models::text
