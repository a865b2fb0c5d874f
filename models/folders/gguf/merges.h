// The merges of BPE with byte fallback, for which a file has the scores of tokens.
#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace braid::models::gguf {

// The merges of SentencePiece's BPE, which joins the two neighbours that are the token of greatest score: every cut of
// a token into two, by falling scores.
nlohmann::json merges_of_scores(const std::vector<std::string>& tokens, const std::vector<double>& scores,
                                const std::unordered_map<std::string, int64_t>& vocabulary);

// What a merge makes of its two tokens, which have a space between them.
std::string joined(const std::string& merge);
// Why these merges make other tokens than those that a file is read with, where each cut of a token into two of
// `tokens` has the rank of the token's first merge; "" where they make the same. They make others where they leave two
// tokens that such a cut joins, or where another merge stands between those of a token.
std::string what_scores_change(const std::vector<std::string>& merges, const std::set<std::string>& tokens);

}  // namespace braid::models::gguf
