// SPDX-License-Identifier: Apache-2.0
#include "te-controller/app/enrolment.h"

#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "common/base/ip_address.h"
#include "common/net/authority.h"
#include "common/net/tls.h"

namespace te {
namespace {

constexpr double kAttemptsAMinute = 10;
constexpr std::size_t kAddressesKept = 4096;
constexpr std::size_t kLongestToken = 128;
constexpr int kStatusForbidden = 403;
constexpr int kStatusTooMany = 429;

/// One network of a provider often is one host: addresses of IPv6 count by their first 64 bits.
std::string limited_by(const std::string& address) {
  const auto parsed = IpAddress::parse(address);
  return parsed && parsed->is_v6() ? parsed->to_bytes().substr(0, 8) : address;
}

}  // namespace

Result<v1::EnrolRequest> parse_enrol_request(const std::string& body) {
  v1::EnrolRequest request;
  const auto read = google::protobuf::util::JsonStringToMessage(body, &request);
  if (!read.ok()) return Error{"the body is not as in {\"node\": NAME, \"token\": TOKEN, \"csr\": PEM}"};
  if (!is_certificate_name(request.node())) return Error{"'node' is a name of letters, digits, '.', '_' and '-'"};
  if (request.token().empty() || request.token().size() > kLongestToken) return Error{"'token' is missing or too long"};
  if (request.csr().empty()) return Error{"'csr' is missing: a PEM certificate request"};
  return request;
}

Enrolment::Enrolment(std::string authority_directory, int certificate_days, Clocks clocks)
    : directory_(std::move(authority_directory)), certificate_days_(certificate_days), clocks_(std::move(clocks)) {}

HttpReply Enrolment::refuse(const HttpRequest& request, int status, const std::string& reason, const std::string& node,
                            const std::string& text) {
  ++refused_[reason];
  spdlog::warn("refused to enrol '{}' at {}: {}", printable(node), request.peer.address, text);
  return error_reply(status, text);
}

bool Enrolment::may_try(const std::string& address) {
  const std::int64_t now_ns = clocks_.now_ns();
  const std::string key = limited_by(address);
  if (attempts_.size() >= kAddressesKept && !attempts_.contains(key)) {
    std::erase_if(attempts_, [&](const auto& entry) { return entry.second.is_full(now_ns); });
    if (attempts_.size() >= kAddressesKept) return false;
  }
  return attempts_.try_emplace(key, kAttemptsAMinute / 60, kAttemptsAMinute).first->second.try_take(1, now_ns);
}

HttpReply Enrolment::answer(const HttpRequest& request) {
  if (directory_.empty())
    return refuse(request, 404, "not_configured", "", "nobody can enrol here: 'enrolment' is not configured");
  if (request.method != "POST") return error_reply(400, "enrolling is a POST");
  if (!request.peer.encrypted) return refuse(request, kStatusForbidden, "not_encrypted", "", "enrolling needs TLS");
  if (!may_try(request.peer.address)) {
    ++refused_["too_many"];  // not logged: that is what the limit is for
    return error_reply(kStatusTooMany, "too many attempts from this address; wait a minute");
  }
  const auto wanted = parse_enrol_request(request.body);
  if (!wanted) return refuse(request, 400, "malformed", "", wanted.error().message);
  return sign(request, *wanted);
}

HttpReply Enrolment::sign(const HttpRequest& request, const v1::EnrolRequest& wanted) {
  const std::string& node = wanted.node();
  const auto no = [&](int status, const std::string& reason, const std::string& text) {
    return refuse(request, status, reason, node, text);
  };
  const EnrolmentTokens tokens(directory_);
  switch (const TokenFault fault = tokens.check(wanted.token(), node, clocks_.wall_s())) {
    case TokenFault::kNone:
      break;
    case TokenFault::kUnknown:
      return no(kStatusForbidden, "unknown_token", std::string(to_string(fault)));
    case TokenFault::kUsed:
      return no(kStatusForbidden, "used_token", std::string(to_string(fault)));
    case TokenFault::kExpired:
      return no(kStatusForbidden, "expired_token", std::string(to_string(fault)));
    case TokenFault::kOtherNode:
      return no(kStatusForbidden, "other_node", std::string(to_string(fault)));
  }
  if (node == kControllerName) return no(kStatusForbidden, "other_node", "no node is called te-controller");
  const auto name = requested_name(wanted.csr());
  if (!name) return no(400, "bad_request", name.error().message);
  if (*name != node)
    return no(kStatusForbidden, "other_node", "the certificate request is for '" + printable(*name) + "'");
  const auto authority = Authority::open(directory_);
  if (!authority) {
    spdlog::error("{}", authority.error().message);
    return no(503, "authority", "the controller cannot sign now; its log says why");
  }
  if (const auto used = tokens.use_up(wanted.token()); !used) return no(kStatusForbidden, "used_token", "used token");
  const auto certificate = authority->certify(
      wanted.csr(), {.name = node, .use = CertificateUse::kClient, .hosts = {}, .days = certificate_days_});
  if (!certificate) {
    spdlog::error("{}", certificate.error().message);
    return no(503, "authority", "the controller cannot sign now; its log says why");
  }
  ++accepted_;
  const auto facts = facts_of_pem(*certificate, "the new certificate");
  spdlog::info("enrolled {} at {}: certificate with serial {}", node, request.peer.address,
               facts ? facts->serial : "?");
  v1::EnrolReply reply;
  reply.set_certificate(*certificate);
  reply.set_ca(authority->certificate());
  HttpReply http;
  (void)google::protobuf::util::MessageToJsonString(reply, &http.body);
  return http;
}

}  // namespace te
