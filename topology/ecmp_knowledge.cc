// SPDX-License-Identifier: Apache-2.0
#include "topology/ecmp_knowledge.h"
