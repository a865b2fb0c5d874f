// A look inside a language model while it reads a text: attention before and after its heads are mixed, the weights
// that mix them, the distribution of the next token, and how it changes when terms of Compose are scaled down.
#pragma once
#include <optional>
#include <vector>

#include "braid/models/inspect/next_token.h"
#include "braid/nn/attention/composition_scale.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

struct InspectionRequest {
  std::vector<int32_t> tokens;
  std::optional<int64_t> layer;                     // none: no attention, the next tokens alone
  std::vector<int64_t> heads, queries;              // of the maps, ascending; empty: all
  bool maps = true, weights = true;                 // of the layer
  std::optional<std::pair<int64_t, int64_t>> pair;  // query, key: the matrices that mix the heads of the layer there
  int64_t candidates = 10;                          // of each next token
  struct Scale {
    std::optional<int64_t> layer;  // none: every layer
    nn::CompositionScale factors;
  };
  std::vector<Scale> scales;  // a later one replaces those before it
};

struct InspectionLimits {
  int64_t tokens = 512;
  int64_t elements = 1 << 22;  // of all tensors of a result, and of one map of all heads and queries
  int64_t candidates = 64;
};

struct Inspection {
  std::vector<int32_t> tokens;
  int64_t layers = 0;                       // of attention, in the model
  int64_t heads = 0, groups = 0, rank = 0;  // N, G, R of the layer; 0 without one
  std::optional<int64_t> layer;
  std::vector<int64_t> head_list, query_list;  // of the maps
  bool scaled = false;                         // some factor is not 1
  std::vector<NextToken> next;                 // of every position
  // Tensors of the layer, in the type of the model, with all factors applied. Names and axes as `braid dump
  // --attention` writes them (apps/dump/names.md): layers.<i>.attn_scores, attn_scores_composed, attn_probs,
  // attn_probs_composed of the heads and queries asked for, and layers.<i>.dyn.* of all; and of the pair, in f64,
  // layers.<i>.mix.<stage>.<part> (N, N): identity, base, query, key, query_gate, key_gate and total (mixing_terms.h).
  io::NamedTensors tensors;
};

// Passes over the whole text, without a cache; with all factors 1 the result has the bits of the model as it is.
// Error(input) for what the request or the limits do not allow: the message names the field, the range and the value.
Inspection inspect(const LanguageModel& model, const InspectionRequest& request, const InspectionLimits& limits = {});

}  // namespace braid::models
