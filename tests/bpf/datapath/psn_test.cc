// SPDX-License-Identifier: Apache-2.0
// Rows: PSNs as they pass, and the gaps and duplicates they count as (the rule is in bpf/flow.bpf.h).
#include "tests/bpf/datapath/bpf_fixture.h"

namespace te::agent {
namespace {

using roce::Opcode;

struct Step {
  std::uint32_t psn;
  Opcode opcode = Opcode::kWriteMiddle;
};

struct PsnRow {
  const char* description;
  std::vector<Step> steps;
  std::uint64_t gaps;
  std::uint64_t duplicates;
  std::uint64_t reordered = 0;
};

std::vector<PsnRow> psn_rows() {
  return {
      {"in order", {{5}, {6}, {7}}, 0, 0},
      {"in order over the 24-bit wrap", {{0xFFFFFE}, {0xFFFFFF}, {0}, {1}}, 0, 0},
      {"SEND and WRITE share the sequence", {{5}, {6, Opcode::kSendOnly}, {7, Opcode::kWriteOnly}}, 0, 0},
      {"one lost, go-back-N: what came after the gap is new when it comes again",
       {{5}, {7}, {8}, {6}, {7}, {8}, {9}},
       1,
       0},
      {"one lost over the wrap", {{0xFFFFFF}, {1}, {0}, {1}, {2}}, 1, 0},
      {"a gap of many PSNs is one gap", {{5}, {100}, {101}}, 1, 0},
      {"two lost before the sender goes back", {{5}, {7}, {9}, {6}, {7}, {8}, {9}, {10}}, 2, 0},
      {"an ACK was lost: all is sent again", {{5}, {6}, {7}, {5}, {6}, {7}, {8}}, 0, 3},
      {"goes back beyond the gap: only what was accepted is a duplicate",
       {{5}, {6}, {8}, {5}, {6}, {7}, {8}, {9}},
       1,
       2},
      {"one comes late, nothing was lost", {{5}, {7}, {6}, {8}, {9}}, 1, 0, 1},
      {"one comes late over the wrap", {{0xFFFFFE}, {0}, {0xFFFFFF}, {1}, {2}}, 1, 0, 1},
      {"one comes later", {{5}, {7}, {8}, {9}, {6}, {10}, {11}}, 1, 0, 1},
      {"two come late", {{5}, {8}, {6}, {7}, {9}}, 1, 0, 1},
      {"one comes late, and the sender goes back nevertheless",
       {{5}, {7}, {6}, {8}, {9}, {6}, {7}, {8}, {9}, {10}},
       1,
       4,
       1},
      {"one comes late, then another", {{5}, {7}, {6}, {8}, {10}, {9}, {11}}, 2, 0, 2},
      {"one comes late, then one is lost", {{5}, {7}, {6}, {8}, {10}, {9}, {10}, {11}}, 2, 0, 1},
      {"one is lost, and a second after the sender went back", {{5}, {7}, {8}, {6}, {8}, {7}, {8}, {9}}, 2, 0, 0},
      {"duplicate over the wrap", {{0xFFFFFF}, {0}, {0xFFFFFF}, {0}, {1}}, 0, 2},
      {"a jump ahead of more than 2^16 is a new connection", {{5}, {0x20000}, {0x20001}}, 0, 0},
      {"a jump back of more than 2^16 is a new connection", {{0x500000}, {5}, {6}}, 0, 0},
      {"a jump of 2^16 is a gap", {{5}, {6 + 0x10000}}, 1, 0},
      {"READ requests take an unknown number of PSNs", {{5}, {6, Opcode::kReadRequest}, {10}, {11}}, 0, 0},
      {"atomics take one", {{5}, {6, Opcode::kFetchAdd}, {7}}, 0, 0},
      {"ACKs and READ responses are numbered by the other side",
       {{5}, {900, Opcode::kAcknowledge}, {77, Opcode::kReadResponseMiddle}, {6}},
       0,
       0},
      {"CNPs have no PSN", {{5}, {0, Opcode::kCnp}, {6}}, 0, 0},
  };
}

class Psn : public BpfFixture, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Each, Psn, testing::Bool(), [](const auto& row) { return row.param ? "v6" : "v4"; });

TEST_P(Psn, FollowsTheRows) {
  for (const PsnRow& row : psn_rows()) {
    SCOPED_TRACE(row.description);
    roce::Packet packet = plain_packet(GetParam());
    packet.payload = packet.payload.first(28);
    for (const Step& step : row.steps) {
      packet.psn = step.psn;
      packet.opcode = step.opcode;
      receive(packet);
    }
    const FlowSample flow = only_flow();
    EXPECT_EQ(flow.counters.packets, row.steps.size());
    EXPECT_EQ(flow.counters.psn_gaps, row.gaps);
    EXPECT_EQ(flow.counters.duplicate_packets, row.duplicates);
    EXPECT_EQ(flow.counters.reordered_packets, row.reordered);
    ASSERT_TRUE(datapath().erase_flow(flow.key));
  }
}

}  // namespace
}  // namespace te::agent
