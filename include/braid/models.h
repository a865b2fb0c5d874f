// Facade of models/ by chapter. What a program rarely needs (converting folders, evaluation, costs) has headers of its
// own: cmake/public-headers.cmake.
#pragma once
// A model of any family: made from a preset or settings, or loaded from a folder.
#include "braid/models/batch.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/image_model.h"
#include "braid/models/language_model.h"
#include "braid/models/model.h"
#include "braid/models/registry.h"

// The families.
#include "braid/models/families/dcformer/model.h"
#include "braid/models/families/seq2seq/model.h"
#include "braid/models/families/vit/model.h"

// New models from trained ones.
#include "braid/models/folders/adapter.h"
#include "braid/models/folders/init_from.h"
#include "braid/models/folders/lora.h"

// Text: tokens, data folders, batches.
#include "braid/models/data/sampler.h"
#include "braid/models/data/text/batches.h"
#include "braid/models/data/text/dataset.h"
#include "braid/models/data/tokenizers/tokenizer.h"

// Training: a step, and the checkpoints of a run.
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/registry.h"

// Generation: of one text, of many at once, as a stream.
#include "braid/models/inference/batch.h"
#include "braid/models/inference/engine.h"
#include "braid/models/inference/generate.h"
#include "braid/models/inference/text_stream.h"
