// SPDX-License-Identifier: Apache-2.0
#include "lab/endpoint/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "common/os/file.h"

namespace te::lab {
namespace {

constexpr std::size_t kMaxFileBytes = 4U << 20;

}  // namespace

std::string qp_table_json(const std::vector<QueuePair>& qps, const char* state) {
  std::string text = "[";
  const char* comma = "";
  for (const QueuePair& qp : qps) {
    text += fmt::format(
        R"({}{{"ifindex":{},"ifname":"rxe{}","port":1,"lqpn":{},"rqpn":{},"type":"RC","state":"{}","rq-psn":{},"sq-psn":{},)"
        R"("path-mig-state":"MIGRATED","pid":{},"comm":"te-lab"}})",
        comma, qp.plan().nic, qp.plan().nic, qp.plan().qpn, qp.plan().remote_qpn,
        qp.requester().is_broken() ? "ERR" : state, qp.responder().expected_psn(), qp.requester().next_psn(),
        ::getpid());
    comma = ",";
  }
  return text + "]\n";
}

std::string stats_line(const std::string& host, std::int64_t now_ns, std::vector<QueuePair>& qps,
                       const EndpointCounters& counters) {
  std::string text = fmt::format(
      R"({{"t_ns":{},"host":"{}","icrc_errors":{},"malformed":{},"unknown_qp":{},"receive_drops":{},"qps":[)", now_ns,
      host, counters.icrc_errors, counters.malformed, counters.unknown_qp, counters.receive_drops);
  const char* comma = "";
  for (QueuePair& qp : qps) {
    const auto& sent = qp.requester().counters();
    const auto& received = qp.responder().counters();
    const auto& congestion = qp.congestion();
    text += fmt::format(
        R"({}{{"qpn":{},"remote_qpn":{},"peer":"{}","sends":{},"source_port":{},"goodput_bytes":{},"messages_received":{},)"
        R"("naks_sent":{},"duplicates":{},"out_of_order":{},"invalid":{},"ce_marks":{},"cnps_sent":{},"cnps_received":{},)"
        R"("packets_sent":{},"retransmitted":{},"naks_received":{},"timeouts":{},"messages_completed":{},"messages_lost":{},)"
        R"("rate_bps":{:.0f}}})",
        comma, qp.plan().qpn, qp.plan().remote_qpn, qp.plan().peer, qp.plan().sends, qp.source_port(),
        received.goodput_bytes, received.messages_received, received.naks, received.duplicates, received.out_of_order,
        received.invalid, congestion.ce_marks, congestion.cnps_sent, congestion.cnps_received, sent.packets_sent,
        sent.retransmitted, sent.naks, sent.timeouts, sent.messages_completed, sent.messages_lost, qp.rate_bps(now_ns));
    comma = ",";
  }
  return text + "]}\n";
}

Result<StatsFile> StatsFile::create(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return errno_error("write " + path);
  return StatsFile(path, std::move(fd));
}

void StatsFile::append(const std::string& line) {
  if (written_bytes_ > kMaxFileBytes && std::rename(path_.c_str(), (path_ + ".1").c_str()) == 0) {
    auto fresh = create(path_);
    if (fresh) *this = std::move(*fresh);
  }
  // One write a line, so that a reader sees whole lines.
  const ssize_t put = ::write(fd_.get(), line.data(), line.size());
  if (put > 0) written_bytes_ += static_cast<std::size_t>(put);
}

}  // namespace te::lab
