// Looks inside a language model while it reads a text, window by window: the numbers behind `braid analyze`.
//
//   text (tokens) ─► windows of T ─► one pass each ─► maps of one layer at a time ─► LayerMeasures (sums)
//
// A window is read from its beginning, without the tokens before it. Memory: the maps of one layer, 6 N T^2 numbers,
// and those of the first window's first tokens, which are kept to be shown. The same arguments give the same bits.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "braid/models/inspect/ablation.h"
#include "braid/models/inspect/circuits.h"
#include "braid/models/inspect/layer_measures.h"
#include "braid/models/inspect/logit_lens.h"
#include "braid/models/inspect/token_losses.h"

namespace braid::models {

enum class AnalysisSection : uint8_t { maps, mixing, rank, diversity, patterns, circuits, ablation, lens };
inline constexpr std::array kAnalysisSections = {
    AnalysisSection::maps,     AnalysisSection::mixing,   AnalysisSection::rank,     AnalysisSection::diversity,
    AnalysisSection::patterns, AnalysisSection::circuits, AnalysisSection::ablation, AnalysisSection::lens};
const char* name_of(AnalysisSection section);

struct AnalysisRequest {
  std::vector<int32_t> tokens;  // the whole windows of them are read: at least one
  int64_t window = 0;           // T, at least 2
  int64_t shown = 0;            // of the first window's tokens, in maps and lens
  std::set<AnalysisSection> sections;
  int64_t circuit_tokens = 16;      // of the matrices of single tokens: the most frequent ones of the text
  int64_t composition_heads = 128;  // models with more heads in all get no composition of heads
};

// A layer's maps and weights for the first `shown` tokens of the first window.
struct ShownLayer {
  // By MapKind: N heads, t queries i, the keys 0 ... Analysis::keys_shown(i) - 1; masked scores are -inf.
  std::array<std::vector<float>, kMapKinds.size()> maps;
  HeadMixing pre, post;  // f32, the first t positions
};

struct AblationResult {
  Ablation ablation;
  MeanAndError change;         // of the loss, over all tokens of all windows
  std::vector<double> tokens;  // (t - 1): of the shown tokens 1 ... t-1
};

struct Lens {
  MeanAndError loss;                 // over all windows
  std::vector<int32_t> best;         // (t), of the shown tokens
  std::vector<double> best_p;        // (t)
  std::vector<double> token_losses;  // (t - 1)
};

struct Circuits {
  std::vector<std::vector<double>> qk_spectrum, ov_spectrum;  // by head of a layer, (d) each
  std::vector<std::vector<double>> qk, ov;                    // by head, (K, K) of the tokens; see circuit_tokens
};

struct Composition {
  int64_t earlier_layer, earlier_head, layer, head;
  CompositionScores scores;
};

struct Analysis {
  int64_t layers = 0, heads = 0, windows = 0, window = 0;
  bool composed = false;  // some layer mixes heads
  bool causal = true;     // no query attends to a key behind it
  MeanAndError loss;      // over all windows
  std::vector<int32_t> shown;
  std::vector<double> shown_losses;  // (t - 1)
  std::vector<LayerMeasures> measures;
  std::vector<ShownLayer> shown_layers;
  std::vector<AblationResult> ablations;
  std::vector<Lens> lens;  // L + 1, or empty
  std::vector<int32_t> circuit_tokens;
  std::vector<Circuits> circuits;  // L, or empty
  std::vector<Composition> composition;
  std::vector<std::string> left_out;  // sections that this model has nothing for, one reason each

  int64_t keys_shown(int64_t query) const { return causal ? query + 1 : std::ssize(shown); }
};

// done in [0, 1]
using AnalysisProgress = std::function<void(double done, const std::string& words)>;

// Error(setting) for a request that does not fit the model: section mixing of a model that mixes no heads, a window
// longer than its context, fewer tokens than one window.
void check_analysis(const LanguageModel& model, const AnalysisRequest& request);

// Throws as check_analysis(). The model is as before afterwards.
Analysis analyze(LanguageModel& model, const AnalysisRequest& request, const AnalysisProgress& progress = {});

}  // namespace braid::models
