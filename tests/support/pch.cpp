#include "tests/support/pch.h"  // anchors the precompiled header in a target that all test programs share
