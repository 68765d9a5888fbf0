// SPDX-License-Identifier: Apache-2.0
// The body of POST /v1/enrol, and the certificate request in it: anybody may send them.
#include <cstddef>
#include <cstdint>

#include "common/net/certificates.h"
#include "te-controller/app/enrolment.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto request = te::parse_enrol_request(std::string(reinterpret_cast<const char*>(data), size));
  if (!request) return 0;
  TE_CHECK(te::is_certificate_name(request->node()), "a node's name can be part of a path");
  (void)te::requested_name(request->csr());
  return 0;
}
