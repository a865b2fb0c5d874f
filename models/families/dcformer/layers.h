// From a model's configuration to the options of its layers.
#pragma once
#include "braid/models/families/dcformer/config.h"
#include "braid/nn.h"

namespace braid::models {

struct TableInits {
  nn::Init embedding = nn::Init::none(), output = nn::Init::none();
};
// With mup_base_width first weights have the deviations of training/mup.h.
TableInits table_inits(const DcformerConfig& config);
// Options of the weight generator, with the published standard deviations.
nn::CompositionOptions composition_options(const DcformerConfig& config);
// Some branch or static matrix is switched on; otherwise attention is plain, whatever use_dcmha says.
bool mixes_heads(const DcformerConfig& config);
nn::BlockOptions block_options(const DcformerConfig& config, int64_t layer, bool initialise);
nn::Depth depth_connections(const DcformerConfig& config, RandomKey key, bool initialise);
// The rotation, and that of local layers, which is empty without rope_local_base.
std::pair<nn::Rope, nn::Rope> make_ropes(const DcformerConfig& config, DType dtype, Device device);
// sqrt(D) rounded to the type of the model, as transformers multiplies by it.
double embedding_scale(const DcformerConfig& config, DType dtype);

}  // namespace braid::models
