// Umbrella: the facades of every folder.
#pragma once
#include "braid/autograd.h"
#include "braid/distributed.h"
#include "braid/models.h"
#include "braid/nn.h"
#include "braid/tensor.h"
