// Facade of nn/ by chapter.
#pragma once
// Modules, initialisation, observers.
#include "braid/nn/init.h"
#include "braid/nn/module.h"
#include "braid/nn/observer.h"
#include "braid/nn/outputs.h"

// Layers.
#include "braid/nn/layers/batch_norm.h"
#include "braid/nn/layers/conv.h"
#include "braid/nn/layers/dropout.h"
#include "braid/nn/layers/embedding.h"
#include "braid/nn/layers/group_norm.h"
#include "braid/nn/layers/gru.h"
#include "braid/nn/layers/linear.h"
#include "braid/nn/layers/lstm.h"
#include "braid/nn/layers/multihead_attention.h"
#include "braid/nn/layers/norm.h"
#include "braid/nn/layers/pool.h"
#include "braid/nn/layers/recurrent.h"
#include "braid/nn/layers/rope.h"
#include "braid/nn/layers/sequential.h"
#include "braid/nn/layers/transformer.h"

// Batches of data.
#include "braid/nn/batches.h"

// Attention and DCMHA, blocks, and the pass that runs through them.
#include "braid/nn/attention/attention.h"
#include "braid/nn/attention/cross_attention.h"
#include "braid/nn/attention/pass.h"
#include "braid/nn/attention/qk_norm.h"
#include "braid/nn/transformer/block.h"
#include "braid/nn/transformer/depth.h"
#include "braid/nn/transformer/mlp.h"

// Optimizers.
#include "braid/nn/optim/clip.h"
#include "braid/nn/optim/master_weights.h"
#include "braid/nn/optim/optimizer.h"
#include "braid/nn/optim/registry.h"
#include "braid/nn/optim/rules/adam.h"
#include "braid/nn/optim/rules/adamw.h"
#include "braid/nn/optim/rules/muon.h"
#include "braid/nn/optim/rules/sgd.h"
#include "braid/nn/optim/schedule.h"

// Inference.
#include "braid/nn/inference/quantize.h"
