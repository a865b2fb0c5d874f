#include "braid/models/families/dcformer/folder.h"

#include "braid/models/families/dcformer/model_types.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

// "profile.key_side and profile.post_compose are false": the switches that leave out branches or static matrices of the
// model; "" when none does.
std::string switches_off(const DcformerConfig& c) {
  const Profile& p = c.profile;
  if (!c.use_dcmha) return "use_dcmha is false";
  std::vector<std::string> names;
  for (const auto& [name, on] : {std::pair{"pre_compose", p.pre_compose},
                                 {"post_compose", p.post_compose},
                                 {"query_side", p.query_side},
                                 {"key_side", p.key_side}})
    if (!on) names.push_back(str("profile.", name));
  if (names.empty()) return "";
  return detail::join(names, " and ") + (names.size() > 1 ? " are" : " is") + " false";
}

}  // namespace

FolderTable dcformer_folder(const DcformerConfig& c) {
  using How = TensorRow::How;
  const Profile& p = c.profile;
  const std::string dynamic = "attention.dyn_w_proj.";
  // C branches, K hidden width of the weight generator, M heads of a group.
  const int64_t C = c.dynamic_branches(), K = c.generator_hidden(), M = c.group_heads();
  FolderTable table{.heads = c.query_heads(), .kv_heads = c.n_kv_head, .head_size = c.head_dim};
  table.other = {{"attention.wqkv", {"attention.wq", "attention.wk", "attention.wv"}, How::parts}};
  if (model_type_named(c.model_type).mudd_folders) {  // the only form of their code
    table.writes_other = true;
    for (const char* norm : {"attention.q_norm", "attention.k_norm"})
      table.other.push_back({str(norm, ".scale"), {str(norm, ".weight")}});
  }
  if (C > 0 && K > 0 && p.num_groups == 1 && p.gates) {  // copies are published for one group only, with gates
    table.other.push_back({dynamic + "dw1", {dynamic + "dw_m"}, How::copy, {c.dim, C * (K + M)}});
    table.other.push_back({dynamic + "dd", {dynamic + "dw_m"}, How::copy, {c.dim, C * (K + M)}, C * K});
    table.other.push_back({dynamic + "qkw", {dynamic + "qkw_m"}, How::copy, {C, K, 2 * p.rank * M}});
  }
  if (C > 0 && K > 0 && !p.static_proj) table.identities = {dynamic + "pre_proj.w", dynamic + "post_proj.w"};
  table.identity = {p.num_groups, M, M};
  table.no_identity =
      "is not the identity although profile.static_proj is off (if the model was trained with a static term, set "
      "profile.static_proj=true in its config.json)";
  table.copies_count = p.merged_weights;
  table.copies = "dw_m, qkw_m";
  table.difference =
      str("differ from dw1, qkw, dd: took ",
          p.merged_weights ? "the copies, which alone the published training code of such folders updates"
                           : "dw1, qkw, dd, from which the published inference code makes the copies anew",
          " (profile.dynamic_weights=", p.merged_weights ? "dw1" : "dw_m", " in config.json takes the others)");
  table.ignored = {".attention.kv_cache."};
  table.remarks = {{".attention.wq.", "q, k, v separate"},
                   {"dyn_w_proj.dw_m", "copies of the dynamic weights"},
                   {"dyn_w_proj.qkw_m", "copies of the dynamic weights"},
                   {"_proj.w", "static or identity matrices"}};
  const std::string off = switches_off(c);
  if (off.empty()) return table;
  table.surplus = {{".dyn_w_proj.", off}};
  for (const char* tensor : {"dw", "dd", "qkw"})
    table.misshapen.emplace_back("dyn_w_proj." + std::string(tensor),
                                 "the model has the branches " + detail::join(p.branches, ",") + " (" + off +
                                     "): switch on what the weights were trained with");
  return table;
}

}  // namespace braid::models
