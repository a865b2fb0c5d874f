// The forms in which published DCFormer and DCPythia folders store weights. Names and shapes of the parameters are the
// model's own (Module::visit); a folder may differ from one tensor per parameter so:
//
//   attention.wq, wk, wv           instead of attention.wqkv (rows: queries, keys, values)
//   dyn_w_proj.dw_m, qkw_m         copies of dw1, dd and qkw, flattened: dw_m (D, C K + C M) = [dw1 | dd],
//                                  qkw_m (C, K, 2R M). The published training code updates only the copies, the earlier
//                                  inference code only makes them: profile.dynamic_weights selects the side that
//                                  counts.
//   dyn_w_proj.pre_proj.w, post_proj.w   identity matrices that nothing reads (without profile.static_proj)
//                                  Other weights of what is switched off are an error that names the switch.
//   attention.q_norm.weight, k_norm.weight   instead of attention.q_norm.scale, k_norm.scale (MUDD)
//   attention.kv_cache.*           contents of a cache when the weights were saved; ignored
#pragma once
#include "braid/models/families/dcformer/config.h"
#include "braid/models/folders/folder.h"

namespace braid::models {

FolderTable dcformer_folder(const DcformerConfig& config);  // resolved

}  // namespace braid::models
