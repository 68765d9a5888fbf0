// SPDX-License-Identifier: Apache-2.0
#include "host-agent/app/role.h"

#include <random>

namespace te::agent {

std::uint64_t random_instance() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

void add_figures(const Uplink& uplink, AgentFigures& figures) {
  figures.sessions = uplink.counts().sessions;
  figures.session_failures = uplink.counts().failures;
  figures.events_lost = uplink.counts().events_lost;
  figures.connected = uplink.has_session() ? 1.0 : 0.0;
}

void add_figures(const LinkWatcher& links, AgentFigures& figures) {
  figures.link_updates = links.counts().updates;
  figures.link_messages_lost = links.counts().messages_lost;
  figures.links_left_out = links.left_out();
  figures.carrier_losses = links.carrier_losses();
  figures.links = static_cast<double>(links.present());
  figures.links_with_carrier = static_cast<double>(links.with_carrier());
}

void add_figures(const Credentials& credentials, AgentFigures& figures) {
  figures.certificate_renewals = credentials.renewals();
  figures.certificate_failures = credentials.failures();
}

}  // namespace te::agent
