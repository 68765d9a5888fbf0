// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/result.h"

namespace te::lab {

/// The endpoint process: runs the plan in the file at `plan_path` in the calling process's namespace, until its
/// standard input is closed. Reads commands there, one a line: "go" starts sending, "drain" ends it after the messages
/// begun, "label QPN FLOW_LABEL" changes a QP's flow label. Writes "ready" and "drained" to standard output. SIGTERM
/// drains.
Result<void> run_endpoint(const std::string& plan_path);

}  // namespace te::lab
