// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "te-controller/app/access.h"
#include "te-controller/app/api.h"
#include "te-controller/app/enrolment.h"
#include "te-controller/app/http_message.h"

namespace te {

/// What stands before the API: finds out who asks and whether that one may. Refusals and every call that changes
/// something are logged with who and what. On the io_context's thread.
class Gate {
 public:
  /// `api` and `enrolment` outlive it.
  Gate(Api& api, Enrolment& enrolment, Access access)
      : api_(&api), enrolment_(&enrolment), access_(std::move(access)) {}

  [[nodiscard]] HttpReply answer(HttpRequest request);
  [[nodiscard]] Access& access() { return access_; }
  /// Calls refused, by reason, as in the metric te_controller_api_refused_total.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const { return refused_; }

 private:
  HttpReply refuse(const HttpRequest& request, const Caller& caller, Role needed);

  Api* api_;
  Enrolment* enrolment_;
  Access access_;
  Pace refusals_logged_{10, 100};  ///< per second, and at once: strangers must not fill the disk
  std::map<std::string, std::uint64_t> refused_;
};

}  // namespace te
