// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/base/result.h"
#include "common/net/pace.h"
#include "te-controller/app/http_message.h"
#include "te/v1/api.pb.h"

namespace te {

/// Reads the body of POST /v1/enrol; an Error says what is wrong with it. Nothing in it has been checked yet but its
/// form: node is a name, token is short, csr is not empty.
Result<v1::EnrolRequest> parse_enrol_request(const std::string& body);

/// Signs certificates for nodes that show a one-time token: POST /v1/enrol. Every refusal is logged with who and what,
/// and counted by reason.
class Enrolment {
 public:
  struct Clocks {
    std::function<std::int64_t()> now_ns;
    std::function<std::int64_t()> wall_s;
  };
  /// `authority_directory`: see Authority; empty: nobody can enrol.
  Enrolment(std::string authority_directory, int certificate_days, Clocks clocks);

  [[nodiscard]] HttpReply answer(const HttpRequest& request);
  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }
  /// By reason, as in the metric te_controller_enrolments_refused_total.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& refused() const { return refused_; }

 private:
  HttpReply refuse(const HttpRequest& request, int status, const std::string& reason, const std::string& node,
                   const std::string& text);
  HttpReply sign(const HttpRequest& request, const v1::EnrolRequest& wanted);
  bool may_try(const std::string& address);

  std::string directory_;
  int certificate_days_;
  Clocks clocks_;
  std::map<std::string, Pace> attempts_;  ///< by address
  std::uint64_t accepted_ = 0;
  std::map<std::string, std::uint64_t> refused_;
};

}  // namespace te
