#include "braid/models/families/vit/cost.h"

#include <algorithm>

#include "braid/models/cost/recomputed_activation.h"

namespace braid::models {

namespace {

// Letters: D width, N heads, T tokens, L blocks, R rank, K = 2 R N hidden width of the weight generator, C branches.
struct Sizes {
  explicit Sizes(const VitConfig& c)
      : D(of(c.hidden_size)),
        F(of(c.intermediate_size)),
        N(of(c.num_attention_heads)),
        T(of(c.tokens())),
        L(of(c.num_hidden_layers)),
        composing(of(c.composing_layers())),
        R(of(c.rank)),
        stages(c.use_dcmha ? c.pre_compose + c.post_compose : 0),
        C(stages * (c.query_side + c.key_side)),
        static_stages(c.static_proj ? stages : 0),
        patch(of(c.patch_channels() * c.stem_patch().rows * c.stem_patch().columns)),
        patches(of(c.patches())),
        end(of(c.num_labels) + (c.rep_size ? of(c.hidden_size) : 0)) {}
  static double of(int64_t n) { return static_cast<double>(n); }
  double D, F, N, T, L, composing, R, stages, C, static_stages, patch, patches, end;
};

// Sizes of the convolutions before the patches, for one image.
struct StemSizes {
  explicit StemSizes(const VitConfig& c) {
    int64_t channels = c.num_channels;
    for (size_t i = 0; i < c.stem_channels.size(); ++i) {
      const Pixels after = after_stem(c.image(), i + 1);
      const int64_t windows = after.rows * after.columns;
      flops += 2 * Sizes::of(windows * 9 * channels * c.stem_channels[i]);
      kept += Sizes::of(windows * (9 * channels + 2 * c.stem_channels[i]));  // windows; product, norm
      statistics += Sizes::of(windows * 2);
      if (i > 0) weights += Sizes::of(9 * channels * c.stem_channels[i]);
      channels = c.stem_channels[i];
    }
  }
  double flops = 0, kept = 0, statistics = 0;
  double weights = 0;  // in the order of the windows, for the gradients of what a convolution reads
};

}  // namespace

double vit_flops(const VitConfig& config) {
  const Sizes s(config);
  const double K = 2 * s.R * s.N;
  const double token = 8 * s.D * s.D + 4 * s.D * s.F;                                  // projections, FFN
  const double weights = s.C * (2 * s.D * K + 2 * K * 2 * s.R * s.N + 2 * s.D * s.N);  // dw1, qkw, dd
  const double pair = 4 * s.D;                                                         // scores, values
  const double mixing = s.C * (4 * s.R * s.N + 2 * s.N) + s.static_stages * 2 * s.N * s.N;
  return StemSizes(config).flops + 2 * s.patches * s.patch * s.D + s.L * s.T * (token + s.T * pair) +
         s.composing * s.T * (weights + s.T * mixing) + 2 * s.D * s.end;
}

TrainingMemory vit_training_memory(const VitConfig& config, TrainingMemory memory, const TrainingSetup& setup) {
  const Sizes s(config);
  const double bytes = static_cast<double>(setup.bytes_per_element), wide = std::max(4.0, bytes);
  const double tokens = static_cast<double>(setup.batch) * s.T, patches = static_cast<double>(setup.batch) * s.patches;
  // A block keeps: residual stream (2 D), q, k, v (3 D), heads' output (D), hidden layer before its activation (F), row
  // statistics of softmax (N) and of both norms (4), dynamic weights as in the DCFormer; where all is kept, the norms'
  // results (2 D) and those of the activations. Dropout adds its factors for both halves (2 D) and for the embeddings,
  // dropout of Compose its factors and new up factors and gates (2 R + 2). At the ends: patches, the input of the final
  // norm, its statistics, and its result where a class token is a part of it. A test measures it on the CPU.
  const double all = setup.keeps_all() ? 1 : 0;
  const bool again = recomputes_activation(nn::FfnKind::gelu, config.activation()) && !setup.keeps_all();
  const double dropped = config.hidden_dropout_prob > 0 ? s.D : 0, composed = config.compose_dropout > 0 ? 1 : 0;
  const double block =
      tokens * (bytes * ((6 + 2 * all) * s.D + 2 * dropped + (again ? 1 : 2) * s.F) + wide * (s.N + 4));
  const double weights = tokens * bytes * s.C * s.N * ((6 + 2 * all) * s.R + 2 + composed * (2 * s.R + 2));
  const double kept =
      setup.recompute ? tokens * s.D * s.L * bytes + block + weights : s.L * block + s.composing * weights;
  const StemSizes of_stem(config);
  const bool stem = !config.stem_channels.empty();
  const double ends = patches * bytes * (stem ? all : 1) * s.patch +
                      tokens * (bytes * ((config.class_token() ? 2 : 1) * s.D + dropped) + 2 * wide);
  memory.activations = kept + ends +
                       static_cast<double>(setup.batch) * (bytes * of_stem.kept + wide * of_stem.statistics) +
                       bytes * of_stem.weights;
  memory.working = std::max(tokens * s.F, tokens * 10 * s.D) * std::max(4.0, bytes);
  return memory;
}

}  // namespace braid::models
