// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace te::roce {

/// RoCEv2's UDP destination port, and the range its source ports come from (inclusive, 14 bits).
inline constexpr std::uint16_t kUdpPort = 4791;
inline constexpr std::uint16_t kMinSourcePort = 0xC000;
inline constexpr std::uint16_t kMaxSourcePort = 0xFFFF;
inline constexpr std::uint32_t kQpnMask = 0xFFFFFF;
inline constexpr std::uint32_t kPsnMask = 0xFFFFFF;
inline constexpr std::uint32_t kHalfPsnSpace = 1U << 23;  ///< PSNs less than this ahead are newer
inline constexpr std::uint32_t kFlowLabelMask = 0xFFFFF;

/// Source port of a flow label (20 bits). Linux include/rdma/ib_verbs.h, rdma_flow_label_to_udp_sport.
[[nodiscard]] std::uint16_t source_port_of_flow_label(std::uint32_t flow_label);
/// Flow label that stands for a QP pair when none is set; symmetric. Linux rdma_calc_flow_label.
[[nodiscard]] std::uint32_t flow_label_of_qpns(std::uint32_t local_qpn, std::uint32_t remote_qpn);
/// Source port that a NIC gives a QP: from `flow_label`, or from the QPNs where it is 0. Linux rdma_get_udp_sport.
[[nodiscard]] std::uint16_t source_port_of_qp(std::uint32_t flow_label, std::uint32_t local_qpn,
                                              std::uint32_t remote_qpn);
/// A flow label, never 0, that gives `port` (0xC000..0xFFFF).
[[nodiscard]] std::uint32_t flow_label_of_source_port(std::uint16_t port);

}  // namespace te::roce
