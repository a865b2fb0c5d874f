#include "braid/models/folders/gguf/merges.h"

#include <algorithm>

#include "braid/tensor/base/strings.h"

namespace braid::models::gguf {

nlohmann::json merges_of_scores(const std::vector<std::string>& tokens, const std::vector<double>& scores,
                                const std::unordered_map<std::string, int64_t>& vocabulary) {
  struct Merge {
    double score;
    size_t token, cut;
  };
  std::vector<Merge> merges;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    if (const auto at = vocabulary.find(token); at == vocabulary.end() || at->second != static_cast<int64_t>(i))
      continue;
    for (size_t cut = 1; cut < token.size(); ++cut) {
      if ((static_cast<unsigned char>(token[cut]) & 0xc0) == 0x80) continue;  // inside of a character
      if (vocabulary.contains(token.substr(0, cut)) && vocabulary.contains(token.substr(cut)))
        merges.push_back({scores[i], i, cut});
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    return a.score != b.score ? a.score > b.score : a.token != b.token ? a.token < b.token : a.cut > b.cut;
  });
  nlohmann::json list = nlohmann::json::array();
  for (const Merge& m : merges) list.push_back({tokens[m.token].substr(0, m.cut), tokens[m.token].substr(m.cut)});
  return list;
}

std::string joined(const std::string& merge) {
  const size_t space = merge.find(' ', 1);
  return merge.substr(0, space) + merge.substr(space + 1);
}

// What is left of a text that merges make of its characters, the first one of the list before all others.
static std::vector<std::string> merged(const std::string& text, const std::unordered_map<std::string, size_t>& ranks) {
  std::vector<std::string> parts;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) & 0xc0) == 0x80 && !parts.empty())
      parts.back() += c;
    else
      parts.emplace_back(1, c);
  for (;;) {
    size_t best = ranks.size(), at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto rank = ranks.find(parts[i] + " " + parts[i + 1]); rank != ranks.end() && rank->second < best)
        best = rank->second, at = i;
    if (best == ranks.size()) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::string what_scores_change(const std::vector<std::string>& merges, const std::set<std::string>& tokens) {
  std::unordered_map<std::string, size_t> ranks;
  std::set<std::string> made;
  const auto shown = [](const std::string& token) { return "'" + braid::detail::preview(token) + "'"; };
  for (size_t i = 0; i < merges.size(); ++i) {
    ranks.emplace(merges[i], ranks.size());
    const std::string token = joined(merges[i]);
    if (!made.insert(token).second && token != joined(merges[i - 1]) && tokens.contains(token))
      return "merges of the token " + shown(token) + " stand apart";
  }
  for (const std::string& token : tokens) {
    const std::vector<std::string> left = merged(token, ranks);
    if (left.size() == 2 && tokens.contains(left[0]) && tokens.contains(left[1]))
      return "no merge makes the token " + shown(token) + " of " + shown(left[0]) + " and " + shown(left[1]);
  }
  return "";
}

}  // namespace braid::models::gguf
