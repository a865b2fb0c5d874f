#include "braid/models/inspect/analysis.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/models/inspect/head_patterns.h"
#include "braid/models/inspect/parameter_named.h"
#include "braid/models/model_spec.h"

namespace braid::models {

namespace {

bool every_layer(int64_t) { return true; }

class Analyzer {
 public:
  Analyzer(LanguageModel& model, const AnalysisRequest& request, const AnalysisProgress& progress)
      : model_(model), r_(request), progress_(progress), norm_(model), scores_(score_options_of(model)) {
    check_analysis(model, request);
    result_.layers = std::ssize(model.make_cache(1).layers);
    result_.window = r_.window;
    result_.windows = std::ssize(r_.tokens) / r_.window;
    result_.measures.resize(static_cast<size_t>(result_.layers));
    const auto shown = static_cast<size_t>(std::min(r_.shown, r_.window));
    result_.shown.assign(r_.tokens.begin(), r_.tokens.begin() + static_cast<std::ptrdiff_t>(shown));
  }

  Analysis run() {
    const NoGrad off;
    probe();
    std::vector<Ablation> ablations;
    if (has(AnalysisSection::ablation)) ablations = all_ablations();
    total_ = static_cast<double>(result_.windows * (4 * result_.layers + std::ssize(ablations)));
    read_windows();
    read_repeated();
    ablate(ablations);
    if (has(AnalysisSection::circuits)) circuits();
    return std::move(result_);
  }

 private:
  bool has(AnalysisSection section) const { return r_.sections.contains(section); }
  std::span<const int32_t> window(int64_t w) const {
    return std::span(r_.tokens).subspan(static_cast<size_t>(w * r_.window), static_cast<size_t>(r_.window));
  }
  void done(double steps, const std::string& words) {
    done_ += steps;
    if (progress_) progress_(std::min(1.0, done_ / total_), words);
  }

  // Two tokens tell whether layers mix heads and mask keys, and of what there is nothing to say.
  void probe() {
    capture(model_, token_ids(model_, window(0).first(2)),
            {.maps = every_layer, .layer = [&](int64_t, const LayerTensors& layer) {
               const Tensor& scores = layer.at("attn_scores");  // (1, N, 2, 2)
               result_.heads = scores.dim(1);
               result_.causal &= !std::isfinite(scores.to_vector<double>()[1]);
               result_.composed |= mixes_heads(layer);
             }});
    if (has(AnalysisSection::lens) && !norm_.known())
      result_.left_out.push_back("logit lens: the model has no parameter norm.weight");
  }

  void keep_shown(const LayerMaps& maps) {
    const int64_t t = std::ssize(result_.shown), T = maps.tokens;
    ShownLayer shown;
    for (const MapKind kind : kMapKinds)
      for (int64_t n = 0; n < maps.heads; ++n)
        for (int64_t i = 0; i < t; ++i)
          for (int64_t j = 0; j < result_.keys_shown(i); ++j)
            shown.maps[static_cast<size_t>(kind)].push_back(
                static_cast<float>(maps[kind][static_cast<size_t>((n * T + i) * T + j)]));
    const auto first = [&](const HeadMixing& w) {
      const auto cut = [&](const Tensor& x) { return x ? x.sliced(1, 0, t).contiguous().to(DType::f32) : Tensor(); };
      return HeadMixing{w.base ? w.base.to(DType::f32) : Tensor(),
                        cut(w.q_down),
                        cut(w.q_up),
                        cut(w.k_down),
                        cut(w.k_up),
                        cut(w.q_gate),
                        cut(w.k_gate)};
    };
    shown.pre = first(maps.pre_weights);
    shown.post = first(maps.post_weights);
    result_.shown_layers.push_back(std::move(shown));
  }

  void read_windows() {
    std::vector<std::vector<double>> lens_losses(static_cast<size_t>(result_.layers + 1));
    if (has(AnalysisSection::lens) && norm_.known()) result_.lens.resize(lens_losses.size());
    const size_t shown = result_.shown.size();
    for (int64_t w = 0; w < result_.windows; ++w) {
      const auto layer = [&](int64_t i, const LayerTensors& observed) {
        const LayerMaps maps = layer_maps(observed, has(AnalysisSection::rank) ? &scores_ : nullptr);
        result_.measures[static_cast<size_t>(i)].add(maps, has(AnalysisSection::rank));
        if (w == 0 && has(AnalysisSection::maps)) keep_shown(maps);
        done(4, str("window ", w + 1, "/", result_.windows, ", layer ", i));
      };
      const auto stream = [&](int64_t i, const Tensor& x) {
        if (result_.lens.empty()) return;
        const LensLayer lens = lens_of(model_, norm_(x), window(w));
        auto& losses = lens_losses[static_cast<size_t>(i)];
        losses.insert(losses.end(), lens.losses.begin(), lens.losses.end());
        if (w > 0) return;
        Lens& l = result_.lens[static_cast<size_t>(i)];
        const auto first = [&](const auto& all, size_t count) {
          return std::decay_t<decltype(all)>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
        };
        l.best = first(lens.best, shown);
        l.best_p = first(lens.best_p, shown);
        l.token_losses = first(lens.losses, shown - 1);
      };
      const Tensor last =
          capture(model_, token_ids(model_, window(w)), {.maps = every_layer, .stream = stream, .layer = layer}).out;
      losses_.push_back(token_losses(model_, last, window(w)));
    }
    std::vector<double> all;
    for (const auto& of_window : losses_) all.insert(all.end(), of_window.begin(), of_window.end());
    result_.loss = mean_and_error(all);
    result_.shown_losses.assign(losses_[0].begin(), losses_[0].begin() + static_cast<std::ptrdiff_t>(shown - 1));
    for (size_t i = 0; i < result_.lens.size(); ++i) result_.lens[i].loss = mean_and_error(lens_losses[i]);
    if (!result_.lens.empty() && std::fabs(result_.lens.back().loss.mean - result_.loss.mean) > 1e-3) {
      result_.lens.clear();  // a family with another last norm
      result_.left_out.push_back("logit lens: norm.weight is not the model's last norm");
    }
  }

  void read_repeated() {
    if (!has(AnalysisSection::patterns)) return;
    std::vector<int32_t> pool = r_.tokens;
    std::ranges::sort(pool);
    pool.erase(std::unique(pool.begin(), pool.end()), pool.end());
    const std::vector<int32_t> tokens = repeated_tokens(pool, r_.window / 2, {.seed = 1, .stream = 0});
    capture(model_, token_ids(model_, tokens),
            {.maps = every_layer, .layer = [&](int64_t i, const LayerTensors& layer) {
               result_.measures[static_cast<size_t>(i)].add_repeated(layer_maps(layer));
             }});
  }

  std::vector<Ablation> all_ablations() const {
    std::vector<Ablation> all;
    if (result_.composed) {
      for (int64_t layer = -1; layer < result_.layers; ++layer) {  // -1: every layer
        const std::optional<int64_t> where = layer < 0 ? std::nullopt : std::optional(layer);
        all.push_back({.layer = where});
        for (const bool pre : {true, false}) {
          all.push_back({.layer = where, .pre = pre, .post = !pre});
          for (const MixingTerm term : kMixingTerms)
            all.push_back({.layer = where, .pre = pre, .post = !pre, .term = term});
        }
      }
    }
    for (int64_t layer = 0; layer < result_.layers; ++layer)
      for (int64_t n = 0; n < heads_of(model_); ++n) all.push_back({.layer = layer, .head = n});
    return all;
  }

  // Whether the text showed such a term: without it there is nothing to switch off.
  bool exists(const Ablation& a) const {
    if (a.head) return true;
    for (int64_t i = 0; i < result_.layers; ++i) {
      const LayerMeasures& m = result_.measures[static_cast<size_t>(i)];
      if (a.layer && *a.layer != i) continue;
      for (const auto& [off, mixing] : {std::pair{a.pre, &m.mixing_pre}, {a.post, &m.mixing_post}})
        for (const MixingTerm term : kMixingTerms)
          if (off && (!a.term || *a.term == term) && mixing->has(term)) return true;
    }
    return false;
  }

  void ablate(const std::vector<Ablation>& ablations) {
    for (const Ablation& ablation : ablations) {
      const std::string layer = ablation.layer ? str("layer ", *ablation.layer, " ") : "";
      const std::string what = "without " + layer + ablation.name();
      if (!exists(ablation)) {
        done(static_cast<double>(result_.windows), what);
        continue;
      }
      std::vector<double> changes;
      AblationResult one{ablation, {}, {}};
      for (int64_t w = 0; w < result_.windows; ++w) {
        const std::vector<double> without = losses_without(model_, ablation, result_.layers, window(w));
        for (size_t t = 0; t < without.size(); ++t) {
          changes.push_back(without[t] - losses_[static_cast<size_t>(w)][t]);
          if (w == 0 && t + 1 < result_.shown.size()) one.tokens.push_back(changes.back());
        }
        done(1, what);
      }
      one.change = mean_and_error(changes);
      result_.ablations.push_back(std::move(one));
    }
  }

  void choose_circuit_tokens() {
    std::map<int32_t, int64_t> counts;
    for (const int32_t id : r_.tokens) ++counts[id];
    std::vector<std::pair<int64_t, int32_t>> order;
    for (const auto& [id, count] : counts) order.emplace_back(-count, id);
    std::ranges::sort(order);
    for (const auto& [count, id] : order)
      if (std::ssize(result_.circuit_tokens) < r_.circuit_tokens) result_.circuit_tokens.push_back(id);
  }

  // Rows (K) of D numbers: of the embedding, each divided by its root mean square, as a norm without weight does; of
  // the output projection with the weight of the final norm.
  std::vector<std::vector<double>> rows_of(const std::string& name, bool normalise) const {
    const Tensor table = parameter_named(model_, name);
    std::vector<std::vector<double>> rows;
    if (!table) return rows;
    const std::vector<double> g = norm_.known() ? norm_.weight().to_vector<double>() : std::vector<double>();
    for (const int32_t id : result_.circuit_tokens) {
      std::vector<double> row = table.sliced(0, id, id + 1).contiguous().to_vector<double>();
      double squares = 0;
      for (const double x : row) squares += x * x;
      const double size = std::sqrt(squares / static_cast<double>(row.size())) + 1e-12;
      for (size_t c = 0; c < row.size(); ++c) row[c] *= normalise ? 1 / size : g.empty() ? 1 : g[c];
      rows.push_back(std::move(row));
    }
    return rows;
  }

  void circuits() {
    choose_circuit_tokens();
    const auto embedding = rows_of("tok_embeddings.weight", true);
    auto output = rows_of("output.weight", false);
    if (output.empty()) output = rows_of("tok_embeddings.weight", false);  // tied
    const size_t K = embedding.size();
    std::vector<std::vector<HeadWeights>> layers;
    const std::string residual = setting_text(model_, "residual");
    const bool sum = residual.empty() || residual == "plain";  // what a head writes reaches later ones as it is
    const bool compose = sum && result_.layers * result_.heads <= r_.composition_heads;
    for (int64_t i = 0; i < result_.layers; ++i) {
      std::vector<HeadWeights> heads = head_weights(model_, i);
      if (heads.empty()) {
        result_.left_out.push_back(
            str(i == 0 ? "circuits: the model" : str("circuits from layer ", i, " on: that layer"),
                " has no parameters attention.wqkv.weight and attention.wo.weight, a norm "
                "behind attention, or a variant that changes queries, keys or values"));
        return;
      }
      Circuits c;
      for (const HeadWeights& head : heads) {
        c.qk_spectrum.push_back(qk_singular_values(head));
        c.ov_spectrum.push_back(ov_singular_values(head));
        std::vector<double> qk(K * K), ov(K * K);
        for (size_t a = 0; a < K; ++a)
          for (size_t b = 0; b < K; ++b) {
            qk[a * K + b] = qk_value(head, embedding[a], embedding[b]);
            ov[a * K + b] = ov_value(head, embedding[a], output[b]);
          }
        c.qk.push_back(std::move(qk));
        c.ov.push_back(std::move(ov));
      }
      result_.circuits.push_back(std::move(c));
      for (int64_t e = 0; e < i && compose; ++e)
        for (size_t m = 0; m < heads.size(); ++m)
          for (size_t n = 0; n < heads.size(); ++n)
            result_.composition.push_back({e, static_cast<int64_t>(m), i, static_cast<int64_t>(n),
                                           composition_scores(layers[static_cast<size_t>(e)][m], heads[n])});
      if (compose) layers.push_back(std::move(heads));
    }
    if (!compose)
      result_.left_out.push_back(
          sum ? str("composition across heads: it is for models of at most ", r_.composition_heads, " heads in all")
              : "composition across heads: with residual = " + residual + " layers read no sum of what heads wrote");
  }

  LanguageModel& model_;
  const AnalysisRequest& r_;
  const AnalysisProgress& progress_;
  FinalNorm norm_;
  const SdpaOptions scores_;
  Analysis result_;
  std::vector<std::vector<double>> losses_;  // by window
  double done_ = 0, total_ = 1;
};

}  // namespace

const char* name_of(AnalysisSection section) {
  constexpr const char* names[] = {"maps", "mixing", "rank", "diversity", "patterns", "circuits", "ablation", "lens"};
  return names[static_cast<size_t>(section)];
}

void check_analysis(const LanguageModel& model, const AnalysisRequest& r) {
  check(!model.make_cache(1).layers.empty(), ErrorKind::setting, [&] {
    return "analysis is of attention: expected a model with attention layers, found a " + model.spec()->model_type();
  });
  check(r.window >= 2 && r.window <= model.max_sequence_length(), ErrorKind::setting, [&] {
    return str("the window of the analysis: expected 2 to the model's longest sequence of ",
               model.max_sequence_length(), " tokens, found ", r.window);
  });
  check(std::ssize(r.tokens) >= r.window, ErrorKind::setting, [&] {
    return str("the text is shorter than the window of the analysis: expected at least ", r.window, " tokens, found ",
               r.tokens.size(), "; give a longer text or a smaller window");
  });
  check(!r.sections.contains(AnalysisSection::mixing) || mixes_heads(model), ErrorKind::setting, [&] {
    return "the analysis of mixing is of composed heads: expected a model with DCMHA, found a " +
           model.spec()->model_type() + " whose attention mixes no heads";
  });
}

Analysis analyze(LanguageModel& model, const AnalysisRequest& request, const AnalysisProgress& progress) {
  return Analyzer(model, request, progress).run();
}

}  // namespace braid::models
