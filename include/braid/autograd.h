// Facade of autograd/ by chapter.
#pragma once
// Operations, each beside its derivative.
#include "braid/autograd/composed.h"
#include "braid/autograd/contract.h"
#include "braid/autograd/convolution.h"
#include "braid/autograd/create.h"
#include "braid/autograd/fft.h"
#include "braid/autograd/indexing.h"
#include "braid/autograd/integers.h"
#include "braid/autograd/linalg.h"
#include "braid/autograd/losses.h"
#include "braid/autograd/manipulate.h"
#include "braid/autograd/math.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/order.h"
#include "braid/autograd/pooling.h"
#include "braid/autograd/reductions.h"
#include "braid/autograd/sample.h"
#include "braid/autograd/scans.h"

// Gradients: leaves, backward(), ops of your own.
#include "braid/autograd/closure.h"
#include "braid/autograd/functional.h"
#include "braid/autograd/hooks.h"
#include "braid/autograd/recompute.h"
#include "braid/autograd/record.h"

// Attention: its options, and its maps for analysis.
#include "braid/autograd/attention_maps.h"
#include "braid/autograd/dcmha.h"

// Looking at tensors and graphs, and checking derivatives.
#include "braid/autograd/debug.h"
#include "braid/autograd/gradcheck.h"
#include "braid/autograd/graph_dot.h"
#include "braid/autograd/graph_svg.h"
#include "braid/tensor/print.h"
