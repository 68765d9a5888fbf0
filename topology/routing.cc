// SPDX-License-Identifier: Apache-2.0
#include "topology/routing.h"
