// SPDX-License-Identifier: Apache-2.0
#include "common/netlink/attributes.h"

#include <linux/netlink.h>

#include <algorithm>

namespace te::netlink {

Result<void> for_each_attribute(Bytes list, const std::function<Result<void>(std::uint16_t, Bytes)>& take) {
  while (list.size() >= sizeof(nlattr)) {
    nlattr header{};
    std::memcpy(&header, list.data(), sizeof(header));
    if (header.nla_len < sizeof(header) || header.nla_len > list.size()) {
      return Error{"attribute " + std::to_string(header.nla_type & NLA_TYPE_MASK) + " has a length of " +
                   std::to_string(header.nla_len) + " bytes where " + std::to_string(list.size()) + " are left"};
    }
    const auto type = static_cast<std::uint16_t>(header.nla_type & NLA_TYPE_MASK);
    const Bytes payload = list.subspan(sizeof(header), header.nla_len - sizeof(header));
    if (auto taken = take(type, payload); !taken) return taken;
    list = list.subspan(std::min<std::size_t>(NLA_ALIGN(header.nla_len), list.size()));
  }
  return {};
}

std::string text_of(Bytes payload) {
  const std::string text(payload.begin(), payload.end());
  return text.substr(0, text.find('\0'));
}

}  // namespace te::netlink
