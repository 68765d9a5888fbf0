// SPDX-License-Identifier: Apache-2.0
#include "common/roce/source_port.h"

namespace te::roce {
namespace {

constexpr std::uint32_t kPortBits = 0x3FFF;
constexpr int kPortBitCount = 14;

}  // namespace

std::uint16_t source_port_of_flow_label(std::uint32_t flow_label) {
  const std::uint32_t low = flow_label & kPortBits;
  const std::uint32_t high = (flow_label & kFlowLabelMask) >> kPortBitCount;
  return static_cast<std::uint16_t>((low ^ high) | kMinSourcePort);
}

std::uint32_t flow_label_of_qpns(std::uint32_t local_qpn, std::uint32_t remote_qpn) {
  std::uint64_t mixed = std::uint64_t{local_qpn} * remote_qpn;
  mixed ^= mixed >> 20;
  mixed ^= mixed >> 40;
  return static_cast<std::uint32_t>(mixed & kFlowLabelMask);
}

std::uint16_t source_port_of_qp(std::uint32_t flow_label, std::uint32_t local_qpn, std::uint32_t remote_qpn) {
  return source_port_of_flow_label(flow_label != 0 ? flow_label : flow_label_of_qpns(local_qpn, remote_qpn));
}

std::uint32_t flow_label_of_source_port(std::uint16_t port) {
  // Label 0 means "derive from the QPNs", so port 0xC000 needs a label whose halves cancel.
  constexpr std::uint32_t kLabelOfLowestPort = 0x4001;
  const std::uint32_t label = port & kPortBits;
  return label != 0 ? label : kLabelOfLowestPort;
}

}  // namespace te::roce
