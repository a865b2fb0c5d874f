// Umbrella, installed as <braid/braid.h>: the public face of every folder.
#pragma once
#include "braid/autograd/autograd.h"
#include "braid/distributed/distributed.h"
#include "braid/models/models.h"
#include "braid/nn/nn.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/print.h"
#include "braid/tensor/tensor.h"
