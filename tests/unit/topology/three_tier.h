// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/fabric.h"

namespace te {

/// Two pods of one leaf and two aggregation switches (kind spine); aggregation i of each pod is cabled to cores 2i-1
/// and 2i. Host hP (10.P.0.2) hangs on leafP. Switch ports have 172.16.N.1 (lower end of cable N), 172.16.N.2 (upper
/// end), in the order leaf1-agg1, leaf1-agg2, leaf2-agg3, leaf2-agg4, agg1-core1, agg1-core2, agg2-core3, agg2-core4,
/// agg3-core1, ..., from 1.
Fabric three_tier();

}  // namespace te
