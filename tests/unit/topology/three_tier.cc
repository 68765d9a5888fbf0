// SPDX-License-Identifier: Apache-2.0
#include "three_tier.h"

#include <string>

namespace te {
namespace {

class Builder {
 public:
  NodeId node(const std::string& name, NodeKind kind) { return *fabric.add_node(name, kind); }
  void cable(NodeId lower, NodeId upper) {
    ++number_;
    join(lower, upper, "172.16." + std::to_string(number_) + ".1", "172.16." + std::to_string(number_) + ".2");
  }
  void join(NodeId a, NodeId b, const std::string& address_a, const std::string& address_b) {
    const PortId from = port(a, b, address_a);
    const PortId to = port(b, a, address_b);
    TE_CHECK(fabric.connect(from, to, 1e9, LinkOrigin::kBuilder).ok(), "test fabric");
  }
  Fabric fabric;

 private:
  PortId port(NodeId at, NodeId towards, const std::string& address) {
    const PortId id = *fabric.add_port(at, fabric.node(towards).name);
    TE_CHECK(fabric.add_address(id, *IpAddress::parse(address)).ok(), "test fabric");
    return id;
  }
  int number_ = 0;
};

}  // namespace

Fabric three_tier() {
  Builder b;
  std::vector<NodeId> leaves, aggs, cores;
  for (int i = 1; i <= 2; ++i) leaves.push_back(b.node("leaf" + std::to_string(i), NodeKind::kLeaf));
  for (int i = 1; i <= 4; ++i) aggs.push_back(b.node("agg" + std::to_string(i), NodeKind::kSpine));
  for (int i = 1; i <= 4; ++i) cores.push_back(b.node("core" + std::to_string(i), NodeKind::kCore));
  for (std::size_t i = 0; i < 4; ++i) b.cable(leaves[i / 2], aggs[i]);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 2; ++j) b.cable(aggs[i], cores[i % 2 * 2 + j]);
  }
  for (int pod = 1; pod <= 2; ++pod) {
    const std::string net = "10." + std::to_string(pod) + ".0.";
    b.join(b.node("h" + std::to_string(pod), NodeKind::kHost), leaves[static_cast<std::size_t>(pod) - 1], net + "2",
           net + "1");
  }
  return std::move(b.fabric);
}

}  // namespace te
