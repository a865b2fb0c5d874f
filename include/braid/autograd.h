// Facade: everything of autograd/.
#pragma once
#include "braid/autograd/attention_maps.h"
#include "braid/autograd/composed.h"
#include "braid/autograd/dcmha.h"
#include "braid/autograd/debug.h"
#include "braid/autograd/gradcheck.h"
#include "braid/autograd/graph_dot.h"
#include "braid/autograd/graph_svg.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/recompute.h"
#include "braid/autograd/record.h"
