// SPDX-License-Identifier: Apache-2.0
#include "te-controller/engine/flow_news.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "common/roce/source_port.h"

namespace te {
namespace {

constexpr std::uint32_t kHighestPort = 0xFFFF;

bool plausible(double rate_bps) { return rate_bps >= 0 && rate_bps <= kHighestRateBps; }  // NaN is neither

/// Protocol Buffers, field by field. A read that fails is at the end of what can be read.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : at_(reinterpret_cast<const std::uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  [[nodiscard]] bool more() const { return at_ != end_; }
  bool varint(std::uint64_t& value, unsigned most_bytes = 10) {
    if (at_ != end_ && *at_ < 0x80) {
      value = *at_++;
      return true;
    }
    value = 0;
    for (unsigned shift = 0; shift < 7 * most_bytes && at_ != end_; shift += 7) {
      const std::uint8_t byte = *at_++;
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  /// Of a field number that agents use.
  bool tag(std::uint64_t& value) { return varint(value, 2); }
  bool bytes(std::string_view& value) {
    constexpr unsigned kSizeBytes = 4;
    std::uint64_t size = 0;
    if (!varint(size, kSizeBytes) || size > static_cast<std::size_t>(end_ - at_)) return false;
    value = {reinterpret_cast<const char*>(at_), static_cast<std::size_t>(size)};
    at_ += size;
    return true;
  }
  bool number(double& value) {
    static_assert(std::endian::native == std::endian::little, "a double on the wire is little endian");
    if (end_ - at_ < static_cast<std::ptrdiff_t>(sizeof value)) return false;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return true;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

constexpr std::uint64_t varint_tag(int field) { return static_cast<std::uint64_t>(field) << 3U; }
constexpr std::uint64_t number_tag(int field) { return static_cast<std::uint64_t>(field) << 3U | 1U; }
constexpr std::uint64_t bytes_tag(int field) { return static_cast<std::uint64_t>(field) << 3U | 2U; }

/// The 32 bits that a wider number leaves in a field of 32, and whether a number is taken for true.
template <class Value>
bool take(WireReader& reader, Value& value) {
  std::uint64_t number = 0;
  if (!reader.varint(number)) return false;
  value = static_cast<Value>(number);
  return true;
}

bool take_address(WireReader& reader, IpAddress& address) {
  std::string_view bytes;
  if (!reader.bytes(bytes)) return false;
  auto read = IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  if (!read) return false;
  address = *read;
  return true;
}

bool take_key(std::string_view bytes, ReportedFlow& flow) {
  using Key = v1::FlowKey;
  FlowId& id = flow.end.id;
  WireReader reader(bytes);
  while (reader.more()) {
    std::uint64_t tag = 0;
    if (!reader.tag(tag)) return false;
    bool good = false;
    if (tag == varint_tag(Key::kIfindexFieldNumber)) good = take(reader, flow.record.ifindex);
    if (tag == bytes_tag(Key::kSourceFieldNumber)) good = take_address(reader, id.source);
    if (tag == bytes_tag(Key::kDestinationFieldNumber)) good = take_address(reader, id.destination);
    if (tag == varint_tag(Key::kDestinationQpnFieldNumber)) good = take(reader, id.destination_qpn);
    if (!good) return false;
  }
  return id.source.is_set() && id.source.family() == id.destination.family() && id.destination_qpn <= roce::kQpnMask;
}

/// Any field but the key, the direction and what is not a number.
bool take_number(WireReader& reader, std::uint64_t tag, ReportedFlow& flow) {
  using Report = v1::FlowReport;
  FlowRecord& record = flow.record;
  std::uint64_t unused = 0;
  switch (tag) {
    case varint_tag(Report::kSourcePortFieldNumber):
      return take(reader, record.source_port);
    case varint_tag(Report::kWirePortFieldNumber):
      return take(reader, record.wire_port);
    case varint_tag(Report::kProvenanceFieldNumber):
      return take(reader, record.provenance);
    case varint_tag(Report::kFlowLabelFieldNumber):
      return take(reader, record.flow_label);
    case varint_tag(Report::kLocalQpnFieldNumber):
      return take(reader, record.local_qpn.emplace());
    case varint_tag(Report::kRemoteQpnFieldNumber):
      return take(reader, record.remote_qpn.emplace());
    case varint_tag(Report::kPacketsFieldNumber):
      return take(reader, record.packets);
    case varint_tag(Report::kEcnCePacketsFieldNumber):
      return take(reader, record.ecn_ce_packets);
    case varint_tag(Report::kNakSequenceFieldNumber):
      return take(reader, record.nak_sequence);
    case varint_tag(Report::kNakRnrFieldNumber):
      return take(reader, record.nak_rnr);
    case varint_tag(Report::kNakOtherFieldNumber):
      return take(reader, record.nak_other);
    case varint_tag(Report::kDuplicatePacketsFieldNumber):
      return take(reader, record.duplicate_packets);
    case varint_tag(Report::kPsnGapsFieldNumber):
      return take(reader, record.psn_gaps);
    case varint_tag(Report::kReorderedPacketsFieldNumber):
      return take(reader, record.reordered_packets);
    case varint_tag(Report::kSteeredPacketsFieldNumber):
      return take(reader, record.steered_packets);
    case varint_tag(Report::kEndedFieldNumber):
      return take(reader, flow.ended);
    case number_tag(Report::kRateBpsFieldNumber):
      return reader.number(flow.rate_bps);
    case number_tag(Report::kPayloadBpsFieldNumber):
      return reader.number(flow.payload_bps);
    case varint_tag(Report::kBytesFieldNumber):
    case varint_tag(Report::kPayloadBytesFieldNumber):
    case varint_tag(Report::kCnpPacketsFieldNumber):
    case varint_tag(Report::kAckPacketsFieldNumber):
      return take(reader, unused);
    default:
      return false;
  }
}

bool take_report(std::string_view bytes, ReportedFlow& flow) {
  using Report = v1::FlowReport;
  bool keyed = false;
  int direction = v1::DIRECTION_UNSPECIFIED;
  WireReader reader(bytes);
  while (reader.more()) {
    std::uint64_t tag = 0;
    if (!reader.tag(tag)) return false;
    if (tag == bytes_tag(Report::kKeyFieldNumber)) {
      std::string_view key;
      if (std::exchange(keyed, true) || !reader.bytes(key) || !take_key(key, flow)) return false;
    } else if (tag == varint_tag(Report::kDirectionFieldNumber)) {
      if (!take(reader, direction)) return false;
    } else if (!take_number(reader, tag, flow)) {
      return false;
    }
  }
  flow.end.egress = direction == v1::EGRESS;
  return keyed && direction != v1::DIRECTION_UNSPECIFIED && flow.record.source_port <= kHighestPort &&
         flow.record.wire_port <= kHighestPort && plausible(flow.rate_bps) && plausible(flow.payload_bps);
}

FlowRecord record_of(const v1::FlowReport& report) {
  FlowRecord record;
  record.ifindex = report.key().ifindex();
  record.source_port = report.source_port();
  record.wire_port = report.wire_port();
  record.provenance = report.provenance();
  record.flow_label = report.flow_label();
  if (report.has_local_qpn()) record.local_qpn = report.local_qpn();
  if (report.has_remote_qpn()) record.remote_qpn = report.remote_qpn();
  record.packets = report.packets();
  record.ecn_ce_packets = report.ecn_ce_packets();
  record.nak_sequence = report.nak_sequence();
  record.nak_rnr = report.nak_rnr();
  record.nak_other = report.nak_other();
  record.duplicate_packets = report.duplicate_packets();
  record.psn_gaps = report.psn_gaps();
  record.reordered_packets = report.reordered_packets();
  record.steered_packets = report.steered_packets();
  return record;
}

}  // namespace

Result<FlowNews> read_flow_update(const v1::FlowUpdate& update) {
  FlowNews news{.interval_ms = update.interval_ms(),
                .complete = update.complete(),
                .kernel_events_lost = update.kernel_events_lost(),
                .kernel_flows_lost = update.kernel_flows_lost(),
                .flows = {}};
  news.flows.reserve(static_cast<std::size_t>(update.flows_size()));
  for (const v1::FlowReport& report : update.flows()) {
    auto id = parse_flow_id(report.key());
    if (!id) return std::move(id).error();
    if (report.direction() == v1::DIRECTION_UNSPECIFIED) return Error{"a flow report without a direction"};
    if (report.wire_port() > kHighestPort || report.source_port() > kHighestPort)
      return Error{"a flow report with a port above 65535"};
    if (!plausible(report.rate_bps()) || !plausible(report.payload_bps()))
      return Error{"a flow report with a rate that is negative, above 1e15 bits/s or no number"};
    news.flows.push_back({.end = {.id = *id, .egress = report.direction() == v1::EGRESS},
                          .record = record_of(report),
                          .ended = report.ended(),
                          .rate_bps = report.rate_bps(),
                          .payload_bps = report.payload_bps()});
  }
  return news;
}

bool read_plain_flow_update(std::string_view message, std::size_t most, FlowNews& news) {
  using Update = v1::FlowUpdate;
  news.interval_ms = 0;
  news.complete = false;
  news.kernel_events_lost = news.kernel_flows_lost = 0;
  news.flows.clear();
  WireReader outer(message);
  std::uint64_t tag = 0;
  std::string_view body;
  if (!outer.tag(tag) || tag != bytes_tag(v1::AgentMessage::kFlowsFieldNumber)) return false;
  if (!outer.bytes(body) || outer.more()) return false;
  WireReader reader(body);
  while (reader.more()) {
    std::string_view report;
    bool good = false;
    if (!reader.tag(tag)) return false;
    if (tag == bytes_tag(Update::kFlowsFieldNumber)) {
      good = news.flows.size() < most && reader.bytes(report) && take_report(report, news.flows.emplace_back());
    }
    if (tag == varint_tag(Update::kIntervalMsFieldNumber)) good = take(reader, news.interval_ms);
    if (tag == varint_tag(Update::kKernelEventsLostFieldNumber)) good = take(reader, news.kernel_events_lost);
    if (tag == varint_tag(Update::kKernelFlowsLostFieldNumber)) good = take(reader, news.kernel_flows_lost);
    if (tag == varint_tag(Update::kCompleteFieldNumber)) good = take(reader, news.complete);
    if (!good) return false;
  }
  return true;
}

}  // namespace te
