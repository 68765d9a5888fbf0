// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "te/v1/agent.pb.h"

namespace te {

/// A message for one node's agent.
struct Outgoing {
  std::string node;
  v1::ControllerMessage message;
};

}  // namespace te
