// SPDX-License-Identifier: Apache-2.0
#include "host-agent/core/rdma_netlink.h"

#include <rdma/rdma_netlink.h>

#include <optional>
#include <utility>

#include "common/netlink/attributes.h"
#include "common/roce/source_port.h"

namespace te::agent {
namespace {

using netlink::Bytes;
using netlink::for_each_attribute;
using netlink::store;
using netlink::text_of;

// Values of enum ib_qp_type and ib_qp_state, Linux include/rdma/ib_verbs.h; RES_TYPE and RES_STATE carry them.
constexpr std::uint8_t kTypeRc = 2;
constexpr std::uint8_t kTypeUc = 3;
constexpr std::uint8_t kTypeXrcInitiator = 9;
constexpr std::uint8_t kTypeXrcTarget = 10;
constexpr std::uint8_t kStateRtr = 2;
constexpr std::uint8_t kStateSqe = 5;

struct QpAttributes {
  std::optional<std::uint32_t> local_qpn;
  std::optional<std::uint32_t> remote_qpn;
  std::optional<std::uint8_t> type;
  std::optional<std::uint8_t> state;
};

Result<QpAttributes> read_queue_pair(Bytes entry) {
  QpAttributes qp;
  auto read = for_each_attribute(entry, [&](std::uint16_t type, Bytes payload) -> Result<void> {
    switch (type) {
      case RDMA_NLDEV_ATTR_RES_LQPN:
        return store(qp.local_qpn, payload, "RES_LQPN");
      case RDMA_NLDEV_ATTR_RES_RQPN:
        return store(qp.remote_qpn, payload, "RES_RQPN");
      case RDMA_NLDEV_ATTR_RES_TYPE:
        return store(qp.type, payload, "RES_TYPE");
      case RDMA_NLDEV_ATTR_RES_STATE:
        return store(qp.state, payload, "RES_STATE");
      default:
        return {};
    }
  });
  if (!read) return std::move(read).error();
  return qp;
}

bool is_connected(const QpAttributes& qp) {
  if (!qp.local_qpn || !qp.remote_qpn || !qp.type || !qp.state) return false;
  const bool connected_type =
      *qp.type == kTypeRc || *qp.type == kTypeUc || *qp.type == kTypeXrcInitiator || *qp.type == kTypeXrcTarget;
  return connected_type && *qp.state >= kStateRtr && *qp.state <= kStateSqe && *qp.local_qpn <= roce::kQpnMask &&
         *qp.remote_qpn <= roce::kQpnMask;
}

}  // namespace

Result<RdmaDevice> parse_rdma_device(Bytes attributes) {
  std::optional<std::uint32_t> index;
  std::string name;
  auto read = for_each_attribute(attributes, [&](std::uint16_t type, Bytes payload) -> Result<void> {
    if (type == RDMA_NLDEV_ATTR_DEV_INDEX) return store(index, payload, "DEV_INDEX");
    if (type == RDMA_NLDEV_ATTR_DEV_NAME) name = text_of(payload);
    return {};
  });
  if (!read) return std::move(read).error();
  if (!index || name.empty()) return Error{"an RDMA device without index or name"};
  return RdmaDevice{*index, std::move(name)};
}

Result<std::vector<QueuePair>> parse_rdma_queue_pairs(Bytes attributes) {
  std::string device;
  std::vector<QueuePair> table;
  const auto take_entry = [&](std::uint16_t type, Bytes entry) -> Result<void> {
    if (type != RDMA_NLDEV_ATTR_RES_QP_ENTRY) return {};
    const auto qp = read_queue_pair(entry);
    if (!qp) return qp.error();
    if (is_connected(*qp)) table.push_back({{}, *qp->local_qpn, *qp->remote_qpn});
    return {};
  };
  auto read = for_each_attribute(attributes, [&](std::uint16_t type, Bytes payload) -> Result<void> {
    if (type == RDMA_NLDEV_ATTR_DEV_NAME) device = text_of(payload);
    if (type == RDMA_NLDEV_ATTR_RES_QP) return for_each_attribute(payload, take_entry);
    return {};
  });
  if (!read) return std::move(read).error();
  for (QueuePair& qp : table) qp.device = device;
  return table;
}

}  // namespace te::agent
