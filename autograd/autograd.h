// Facade: everything of autograd/.
#pragma once
#include "autograd/checkpoint.h"
#include "autograd/dcmha.h"
#include "autograd/debug.h"
#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "autograd/record.h"
