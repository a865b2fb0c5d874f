// Wrong on purpose: tests/lint checks that the program names no family of models.
#include "braid/models/families/dcformer/config.h"
