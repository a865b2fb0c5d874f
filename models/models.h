// Facade, installed as <braid/models.h>: models, their data, training, generation and evaluation.
#pragma once
#include "braid/models/dcformer/cost.h"
#include "braid/models/dcformer/model.h"
#include "braid/models/eval/icl_tasks.h"
#include "braid/models/generation/generate.h"
#include "braid/models/language_model.h"
#include "braid/models/pretrained.h"
#include "braid/models/text/dataset.h"
#include "braid/models/text/prepare/prepare.h"
#include "braid/models/text/sampler.h"
#include "braid/models/text/tokenizer.h"
#include "braid/models/training/checkpoint.h"
#include "braid/models/training/trainer.h"
