// Facade: everything of nn/.
#pragma once
#include "nn/attention.h"
#include "nn/block.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/optim/clip.h"
#include "nn/optim/optimizer.h"
#include "nn/optim/schedule.h"
#include "nn/rope.h"
