#include "braid/nn/attention/variant.h"

#include <algorithm>
#include <limits>

#include "braid/nn/attention/composed_attention.h"
#include "braid/nn/rule_list.h"
#include "braid/tensor/base/strings.h"

namespace braid::nn {

static RuleList<AttentionVariantRule>& rules() {
  static RuleList<AttentionVariantRule> list("attention variants", detail::built_in_attention_variants());
  return list;
}

void register_attention_variant(const AttentionVariantRule& rule) { rules().add(rule); }

const std::vector<AttentionVariantRule>& attention_variants() { return rules().all(); }

const AttentionVariantRule& attention_variant_named(const std::string& name) {
  if (const AttentionVariantRule* rule = rules().find(name)) return *rule;
  const std::vector<std::string> names = rules().names();
  fail(ErrorKind::setting, "unknown attention variant '" + braid::detail::preview(name) + "'" +
                               braid::detail::did_you_mean(name, names) + ": expected some of " +
                               braid::detail::join(names, ", "));
}

Tensor softmax_beside(const Tensor& s, const Tensor& z) {
  const int64_t S = s.dim(3);
  return slice(softmax(concat({s, expand(z, {s.dim(0), s.dim(1), s.dim(2), 1})}, 3)), 3, 0, S);
}

// k (B, S, Nkv, d), q (B, S, each Nkv, d) -> (B, S, Nkv, (1 + each) d): behind each key the queries that read it.
static Tensor with_queries(const Tensor& k, const Tensor& q, int64_t each) {
  return concat({k, reshape(q, {k.dim(0), k.dim(1), k.dim(2), each * q.dim(3)})}, 3);
}

// The n queries behind such keys before position `end`, (B, n, N, d) as q; 0 before the first key.
static Tensor queries_before(const Tensor& q, const Tensor& k, int64_t end, int64_t n) {
  const int64_t B = q.dim(0), N = q.dim(2), d = q.dim(3);
  const int64_t first = std::max<int64_t>(0, end - n), missing = n - (end - first);
  const Tensor rows = reshape(slice(slice(k, 1, first, end), 3, d, k.dim(3)), {B, end - first, N, d});
  return missing == 0 ? rows : concat({zeros({B, missing, N, d}, q.dtype(), q.device()), rows}, 1);
}

void check_attention_variants(const std::vector<std::string>& names) {
  const auto need = [](bool ok, const std::string& expected, const std::string& found) {
    check(ok, ErrorKind::setting, [&] { return "bad attention: expected " + expected + ", found " + found; });
  };
  std::string normalising, whole;
  for (const std::string& name : names) {
    const AttentionVariantRule& rule = attention_variant_named(name);
    need(rule.queries_per_head == 1 || name == names[0], name + " first, which makes heads of several query heads",
         braid::detail::join(names, ","));
    need(!rule.normalises || normalising.empty(), "one variant in the place of the softmax",
         normalising + " and " + name);
    if (rule.normalises) normalising = name;
    const bool alone = rule.pseudo || rule.earlier_queries > 0;
    need(!alone || whole.empty(), "one variant whose scores are those of several tokens", whole + " and " + name);
    if (alone) whole = name;
  }
}

AttentionVariants::AttentionVariants(const std::vector<std::string>& names, VariantSizes sizes, RandomKey key)
    : names_(names) {
  check_attention_variants(names);
  for (const std::string& name : names) {
    const AttentionVariantRule& rule = attention_variant_named(name);
    queries_per_head_ *= rule.queries_per_head;
    composed_ = composed_ || rule.composed;
    sizes.queries = sizes.heads * queries_per_head_;
    queries_per_key_ = sizes.queries / sizes.kv_heads;
    variants_.push_back(rule.make(sizes, child(key, name.c_str())));
  }
}

AttentionVariants::AttentionVariants(const AttentionVariants& other)
    : names_(other.names_),
      queries_per_head_(other.queries_per_head_),
      queries_per_key_(other.queries_per_key_),
      composed_(other.composed_) {
  for (size_t i = 0; i < names_.size(); ++i)
    variants_.push_back(attention_variant_named(names_[i]).copy(*other.variants_[i]));
}

AttentionVariants& AttentionVariants::operator=(AttentionVariants other) noexcept {
  std::swap(names_, other.names_);
  std::swap(variants_, other.variants_);
  queries_per_head_ = other.queries_per_head_;
  queries_per_key_ = other.queries_per_key_;
  composed_ = other.composed_;
  return *this;
}

bool AttentionVariants::any(bool (*is)(const AttentionVariantRule&)) const {
  return std::ranges::any_of(names_, [&](const std::string& name) { return is(attention_variant_named(name)); });
}

bool AttentionVariants::gives(const Pass& pass) const {
  return pass.shared && std::ranges::any_of(names_, [&](const std::string& name) {
           return attention_variant_named(name).gives && !pass.shared->contains(name);
         });
}

Tensor AttentionVariants::projections(Tensor qkv, const QkvSplit& how, const Tensor& x, const Pass& pass) const {
  for (const auto& variant : variants_) qkv = variant->projections(qkv, how, x, pass);
  return qkv;
}

Tensor AttentionVariants::output(Tensor y, const Tensor& x, const Tensor& v, const Pass& pass) const {
  for (const auto& variant : variants_) y = variant->output(y, x, v, pass);
  return y;
}

AttentionOperands AttentionVariants::operands(const Qkv& qkv, std::function<Tensor(const Tensor& scores)> first) const {
  AttentionOperands x{qkv.q, qkv.k, qkv.v, {}, {}};
  if (first || any([](const AttentionVariantRule& rule) { return rule.composed && !rule.pseudo; }))
    x.composed = score_functions(std::move(first));
  for (const auto& variant : variants_)
    if (variant->pseudo_tokens() > 1) x.pseudo = variant.get();
  if (any([](const AttentionVariantRule& rule) { return rule.earlier_queries > 0; })) {
    const int64_t N = x.q.dim(2), Nkv = x.k.dim(2);
    check(N == Nkv * queries_per_key_, ErrorKind::setting, [&] {
      return str("bad attention: expected ranks with the queries of their own key heads for ",
                 braid::detail::join(names_, ","), ", found one with ", N, " query heads and ", Nkv,
                 " key heads, each read by ", queries_per_key_,
                 "; take a number of tensor ranks that divides n_kv_head");
    });
    x.k = with_queries(x.k, x.q, queries_per_key_);
  }
  return x;
}

ScoreFunctions AttentionVariants::score_functions(std::function<Tensor(const Tensor& scores)> first) const {
  ScoreFunctions f;
  int64_t earlier = 0;
  for (const std::string& name : names_) earlier = std::max(earlier, attention_variant_named(name).earlier_queries);
  f.scores = [variants = variants_, earlier, first = std::move(first)](
                 const Tensor& q, const Tensor& k, const DcmhaOptions& options, const AttentionMask& mask) {
    const Tensor queries = earlier == 0 ? q : concat({queries_before(q, k, mask.offset, earlier), q}, 1);
    Tensor s = attention_scores(queries, k, options);
    if (first) s = first(s);
    for (const auto& variant : variants)
      s = variant->scores(s, {mask.causal, mask.window, mask.offset + q.dim(1) - s.dim(2)});
    return mask_scores(s, mask, -std::numeric_limits<double>::infinity());
  };
  f.probabilities = [variants = variants_](const Tensor& s, const AttentionMask& mask) {
    Tensor p;
    for (const auto& variant : variants)
      if (!p) p = variant->normalised(s);
    if (!p) p = softmax(s);
    for (const auto& variant : variants) p = variant->probabilities(p);
    return mask_scores(p, mask, 0);
  };
  return f;
}

void AttentionVariants::visit(Visitor& v) const {
  for (size_t i = 0; i < names_.size(); ++i) v(names_[i], *variants_[i]);
}

}  // namespace braid::nn
