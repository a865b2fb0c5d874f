#include "braid/models/inspect/inspection_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace braid::models {

namespace {

using nlohmann::ordered_json;

// JSON has no infinities.
ordered_json number(double x) { return std::isfinite(x) ? ordered_json(x) : ordered_json(nullptr); }

ordered_json token_json(int32_t id, const text::Tokenizer* tokenizer) {
  ordered_json token = {{"id", id}};
  if (tokenizer) token["text"] = id < tokenizer->vocab_size() ? std::string(tokenizer->token_bytes(id)) : "";
  return token;
}

ordered_json distribution_json(const NextToken::Distribution& d) {
  return {{"entropy", number(d.entropy)}, {"next", d.next ? number(*d.next) : ordered_json(nullptr)}};
}

ordered_json position_json(const Inspection& inspection, size_t t, const text::Tokenizer* tokenizer) {
  const NextToken& next = inspection.next[t];
  ordered_json position = token_json(inspection.tokens[t], tokenizer);
  position["plain"] = distribution_json(next.plain);
  if (inspection.scaled) {
    position["scaled"] = distribution_json(next.scaled);
    position["kl"] = number(next.kl);
  }
  ordered_json& candidates = position["candidates"] = ordered_json::array();
  for (const NextToken::Candidate& c : next.candidates) {
    ordered_json candidate = token_json(c.token, tokenizer);
    candidate["plain"] = number(c.plain);
    if (inspection.scaled) candidate["scaled"] = number(c.scaled);
    candidates.push_back(std::move(candidate));
  }
  return position;
}

ordered_json description(const Inspection& inspection, const text::Tokenizer* tokenizer) {
  ordered_json root = {{"object", "inspection"}, {"layers", inspection.layers}, {"scaled", inspection.scaled}};
  if (inspection.layer) {
    root["layer"] = *inspection.layer;
    root["heads"] = inspection.heads;
    root["groups"] = inspection.groups;
    root["rank"] = inspection.rank;
    root["head_list"] = inspection.head_list;
    root["query_list"] = inspection.query_list;
  }
  ordered_json& positions = root["positions"] = ordered_json::array();
  for (size_t t = 0; t < inspection.tokens.size(); ++t) positions.push_back(position_json(inspection, t, tokenizer));
  return root;
}

// Bytes of tokens that are no UTF-8 become U+FFFD.
std::string text_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Tensor rounded(const Tensor& x, DType dtype) { return x.to(kCpu).to(dtype).contiguous(); }

}  // namespace

std::string inspection_json(const Inspection& inspection, const text::Tokenizer* tokenizer, DType dtype) {
  ordered_json root = description(inspection, tokenizer);
  ordered_json& tensors = root["tensors"] = ordered_json::object();
  for (const NamedTensor& t : inspection.tensors) {
    ordered_json data = ordered_json::array();
    for (const double x : rounded(t.value, dtype).to_vector<double>()) data.push_back(number(x));
    tensors[t.name] = {{"shape", std::vector<int64_t>(t.value.shape().begin(), t.value.shape().end())},
                       {"data", std::move(data)}};
  }
  return text_of(root);
}

std::string inspection_safetensors(const Inspection& inspection, const text::Tokenizer* tokenizer, DType dtype) {
  std::vector<io::TensorSource> sources;
  for (const NamedTensor& t : inspection.tensors) sources.push_back({t.name, dtype, t.value.shape(), {}});
  const io::SafetensorsPlan plan =
      io::plan_safetensors(sources, {{"inspection", text_of(description(inspection, tokenizer))}});
  std::string file = plan.head;
  file.reserve(static_cast<size_t>(plan.bytes));
  for (const io::TensorInfo& info : plan.tensors) {
    for (const NamedTensor& t : inspection.tensors) {
      if (t.name != info.name) continue;
      const Tensor values = rounded(t.value, dtype);
      file.append(static_cast<const char*>(values.raw()), static_cast<size_t>(info.bytes));
    }
  }
  return file;
}

}  // namespace braid::models
