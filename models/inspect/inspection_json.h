// An inspection for other programs: as JSON, or as a safetensors file, whose JSON header describes little-endian
// arrays. inspection.md describes both.
#pragma once
#include <string>

#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/inspect/inspection.h"

namespace braid::models {

// Everything in one JSON object; tensors are rounded to `dtype` (f32 or f16). -inf is null. Tokens without a tokenizer
// have ids alone.
std::string inspection_json(const Inspection& inspection, const text::Tokenizer* tokenizer, DType dtype = DType::f32);
// A safetensors file with the tensors in `dtype`; the metadata "inspection" is the JSON object without tensors.
std::string inspection_safetensors(const Inspection& inspection, const text::Tokenizer* tokenizer,
                                   DType dtype = DType::f32);

}  // namespace braid::models
