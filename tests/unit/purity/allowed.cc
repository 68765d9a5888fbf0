// SPDX-License-Identifier: Apache-2.0
// What pure libraries may do: TE_CHECK and the conversions of addresses. The check must find nothing here.
#include <arpa/inet.h>

#include "common/base/result.h"

namespace te {

bool allowed(const char* text);

bool allowed(const char* text) {
  in_addr address{};
  TE_CHECK(text != nullptr, "no text");
  return inet_pton(AF_INET, text, &address) == 1;
}

}  // namespace te
