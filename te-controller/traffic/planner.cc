// SPDX-License-Identifier: Apache-2.0
#include "te-controller/traffic/planner.h"
