// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_datapath.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "bpf/te_abi.h"
#include "common/os/file.h"
#include "common/os/unique_fd.h"
#include "common/roce/source_port.h"
#include "host-agent/io/bpf_attachment.h"
#include "host-agent/io/bpf_convert.h"
#include "host-agent/io/bpf_map_walk.h"
#include "host-agent/io/bpf_objects.h"
#include "host-agent/io/bpf_pinned_steering.h"

namespace te::agent {
namespace {

constexpr std::array kDirections{FlowDirection::kEgress, FlowDirection::kIngress};

struct FreeRingBuffer {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

/// The index of an interface that carries Ethernet frames, which is what the programs parse.
Result<std::uint32_t> ethernet_ifindex(const std::string& interface) {
  ifreq request{};
  if (interface.empty() || interface.size() >= sizeof request.ifr_name) {
    return Error{"\"" + interface + "\" is no interface name"};
  }
  const std::uint32_t ifindex = if_nametoindex(interface.c_str());
  if (ifindex == 0) return errno_error("find interface " + interface + " in this network namespace");
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0)
    return errno_error("look at interface " + interface);
  const auto type = request.ifr_hwaddr.sa_family;
  if (type != ARPHRD_ETHER && type != ARPHRD_LOOPBACK) {
    return Error{"interface " + interface + " is of link type " + std::to_string(type) +
                 ", only Ethernet is understood"};
  }
  return ifindex;
}

/// Calls `take` with each key and value of a flow map.
template <class Key>
Result<void> for_each_flow(int map_fd, const std::function<void(const Key&, const TeFlow&)>& take) {
  return for_each_entry(map_fd, sizeof(Key), sizeof(TeFlow), [&take](auto key_bytes, auto flow_bytes) {
    Key key;
    TeFlow flow;
    std::memcpy(&key, key_bytes.data(), sizeof key);
    std::memcpy(&flow, flow_bytes.data(), sizeof flow);
    take(key, flow);
  });
}

Error control_error(int error_number, const std::string& doing) {
  switch (error_number) {
    case ENOENT:
      return Error{doing + ": no such flow in the kernel"};
    case EBUSY:
      return Error{doing + ": the flow is steered; let it go first"};
    case E2BIG:
      return Error{doing + ": the flow map is full"};
    case EINVAL:
      return Error{doing + ": not a flow that leaves this host"};
    default:
      return errno_error(doing, error_number);
  }
}

Result<void> run_control(int program_fd, TeControl request, const FlowKey& key, const std::string& doing) {
  if (key.source.is_v4() && key.destination.is_v4()) {
    request.family = 4;
    request.key_v4 = to_kernel_v4(key);
  } else if (key.source.is_v6() && key.destination.is_v6()) {
    request.family = 6;
    request.key_v6 = to_kernel_v6(key);
  } else {
    return Error{doing + ": the flow's addresses are not both IPv4 or both IPv6"};
  }
  bpf_test_run_opts run{};
  run.sz = sizeof run;
  run.ctx_in = &request;
  run.ctx_size_in = sizeof request;
  if (bpf_prog_test_run_opts(program_fd, &run) != 0) return errno_error(doing);
  const int status = static_cast<int>(run.retval);
  if (status != 0) return control_error(-status, doing);
  return {};
}

std::string describe(const FlowKey& key) {
  return key.source.to_string() + " > " + key.destination.to_string() + " QPN " + std::to_string(key.destination_qpn);
}

/// Ids of the programs pinned in a directory, of any ABI version, and of a successor that did not finish.
std::vector<std::uint32_t> pinned_program_ids(const std::string& directory) {
  std::vector<std::uint32_t> ids;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error)) {
    if (!entry.path().filename().string().starts_with("program_")) continue;
    const UniqueFd program(bpf_obj_get(entry.path().c_str()));
    if (!program) continue;
    if (const auto id = program_id(program.get())) ids.push_back(*id);
  }
  return ids;
}

/// By clsact, from all interfaces of the calling thread's network namespace but `kept`.
Result<void> detach_filters(const std::string& pin_directory, std::span<const std::uint32_t> program_ids,
                            std::uint64_t netns, const std::set<BpfDatapath::Place>& kept) {
  const auto interfaces = all_ifindexes();
  if (!interfaces) return interfaces.error();
  for (const std::uint32_t ifindex : *interfaces) {
    if (kept.contains({ifindex, netns})) continue;
    for (const FlowDirection direction : kDirections) {
      if (auto detached = detach_clsact(pin_directory, {ifindex, direction, netns}, program_ids); !detached)
        return detached;
    }
  }
  return {};
}

}  // namespace

struct BpfDatapath::State {
  std::string pin_directory;
  BpfDatapathOptions::InEach in_each_netns;
  BpfObjects objects;
  std::unique_ptr<ring_buffer, FreeRingBuffer> ring;
  const std::function<void(const KernelEvent&)>* take = nullptr;  // while drain_events() runs

  static int on_event(void* context, void* data, std::size_t size) {
    TeEvent event;
    if (size < sizeof event) return 0;
    std::memcpy(&event, data, sizeof event);
    (*static_cast<State*>(context)->take)(from_kernel(event));
    return 0;
  }

  [[nodiscard]] int program_of(FlowDirection direction) const {
    return (direction == FlowDirection::kEgress ? objects.egress_program : objects.ingress_program).get();
  }
  [[nodiscard]] std::vector<std::uint32_t> program_ids() const {
    std::vector<std::uint32_t> ids;
    for (const FlowDirection direction : kDirections) {
      if (const auto id = program_id(program_of(direction))) ids.push_back(*id);
    }
    return ids;
  }

  Result<void> attach_both(std::uint32_t ifindex, AttachMode mode, std::uint64_t netns) const {
    for (const FlowDirection direction : kDirections) {
      const BpfHook hook{ifindex, direction, netns};
      // Twice on one hook would count each packet twice.
      auto other = mode == AttachMode::kTcx ? detach_clsact(pin_directory, hook, program_ids())
                                            : detach_tcx(pin_directory, hook);
      if (!other) return other;
      auto attached = mode == AttachMode::kTcx ? attach_tcx(pin_directory, hook, program_of(direction))
                                               : attach_clsact(pin_directory, hook, program_of(direction));
      if (!attached) return attached;
    }
    return {};
  }
};

BpfDatapath::BpfDatapath(std::unique_ptr<State> state) : state_(std::move(state)) {}
BpfDatapath::BpfDatapath(BpfDatapath&&) noexcept = default;
BpfDatapath& BpfDatapath::operator=(BpfDatapath&&) noexcept = default;
BpfDatapath::~BpfDatapath() = default;

Result<BpfDatapath> BpfDatapath::open(const BpfDatapathOptions& options) {
  const auto version = pinned_abi_version(options.pin_directory);
  if (!version) return version.error();
  if (!*version || **version == kTeAbiVersion) return open_with(options, BpfObjects::open(options.pin_directory));
  auto successor = succeed(options);
  if (successor) return successor;
  return with_context(std::move(successor).error(),
                      "take over from the programs of ABI version " + std::to_string(**version) + " pinned in " +
                          options.pin_directory +
                          " (they go on steering; `host-agent cleanup` removes them and lets all steered flows go)");
}

Result<BpfDatapath> BpfDatapath::open_with(const BpfDatapathOptions& options, Result<BpfObjects> objects) {
  if (!objects) return std::move(objects).error();
  auto state = std::make_unique<State>();
  state->pin_directory = options.pin_directory;
  state->in_each_netns = options.in_each_netns;
  state->objects = std::move(*objects);
  state->ring.reset(ring_buffer__new(state->objects.events.get(), State::on_event, state.get(), nullptr));
  if (!state->ring) return errno_error("map the ring buffer of events");
  return BpfDatapath(std::move(state));
}

/// First the new maps get the steering, then each hook the new program in one step: no packet misses its steering.
Result<BpfDatapath> BpfDatapath::succeed(const BpfDatapathOptions& options) {
  const auto steering = read_pinned_steering(options.pin_directory);
  if (!steering) return steering.error();
  const std::vector<std::uint32_t> old_ids = pinned_program_ids(options.pin_directory);
  auto datapath = open_with(options, BpfObjects::open_successor(options.pin_directory));
  if (!datapath) return datapath;
  for (const PinnedSteering& flow : *steering) {
    if (auto set = datapath->set_steering(flow.key, flow.port); !set) return std::move(set).error();
  }
  const State& state = *datapath->state_;
  const int egress = state.program_of(FlowDirection::kEgress);
  const int ingress = state.program_of(FlowDirection::kIngress);
  auto replaced = replace_linked(options.pin_directory, egress, ingress);
  options.in_each_netns([&](std::uint64_t) {
    if (replaced) replaced = replace_filters(old_ids, egress, ingress);
  });
  if (!replaced) return std::move(replaced).error();
  if (auto moved = succeed_pins(options.pin_directory); !moved) return std::move(moved).error();
  return datapath;
}

Result<AttachMode> BpfDatapath::attach(const std::string& interface, AttachMode wanted, std::uint64_t netns) {
  const auto ifindex = ethernet_ifindex(interface);
  if (!ifindex) return ifindex.error();
  AttachMode mode = wanted;
  if (wanted == AttachMode::kAuto) mode = require_tcx() ? AttachMode::kTcx : AttachMode::kClsact;
  if (auto attached = state_->attach_both(*ifindex, mode, netns); !attached) {
    return with_context(std::move(attached).error(), "interface " + interface);
  }
  return mode;
}

Result<void> BpfDatapath::detach(const std::string& interface, std::uint64_t netns) {
  const auto ifindex = ethernet_ifindex(interface);
  if (!ifindex) return ifindex.error();
  for (const FlowDirection direction : kDirections) {
    const BpfHook hook{*ifindex, direction, netns};
    if (auto detached = detach_tcx(state_->pin_directory, hook); !detached) return detached;
    if (auto detached = detach_clsact(state_->pin_directory, hook, state_->program_ids()); !detached) return detached;
  }
  return {};
}

Result<void> BpfDatapath::keep_only(const std::set<Place>& places) {
  std::vector<BpfHook> kept;
  for (const Place& place : places) {
    for (const FlowDirection direction : kDirections) kept.push_back({place.ifindex, direction, place.netns});
  }
  if (auto released = release_other_links(state_->pin_directory, kept); !released) return released;
  const std::vector<std::uint32_t> ids = state_->program_ids();
  Result<void> detached;
  state_->in_each_netns([&](std::uint64_t netns) {
    if (detached) detached = detach_filters(state_->pin_directory, ids, netns, places);
  });
  return detached;
}

Result<std::vector<FlowSample>> BpfDatapath::read_flows() {
  std::vector<FlowSample> samples;
  auto v4 = for_each_flow<TeFlowKeyV4>(state_->objects.flows_v4.get(), [&samples](const auto& key, const TeFlow& flow) {
    samples.push_back(from_kernel(from_kernel(key), flow));
  });
  if (!v4) return std::move(v4).error();
  auto v6 = for_each_flow<TeFlowKeyV6>(state_->objects.flows_v6.get(), [&samples](const auto& key, const TeFlow& flow) {
    samples.push_back(from_kernel(from_kernel(key), flow));
  });
  if (!v6) return std::move(v6).error();
  return samples;
}

Result<void> BpfDatapath::set_steering(const FlowKey& key, std::uint16_t port) {
  if (port != 0 && port < roce::kMinSourcePort) {
    return Error{"steer " + describe(key) + ": port " + std::to_string(port) + " is outside 49152..65535"};
  }
  TeControl request{};
  request.operation = kTeControlSteer;
  request.steer_port = port;
  return run_control(state_->objects.control_program.get(), request, key, "steer " + describe(key));
}

Result<void> BpfDatapath::erase_flow(const FlowKey& key) {
  TeControl request{};
  request.operation = kTeControlErase;
  return run_control(state_->objects.control_program.get(), request, key, "forget " + describe(key));
}

int BpfDatapath::event_fd() const { return ring_buffer__epoll_fd(state_->ring.get()); }

std::size_t BpfDatapath::drain_events(const std::function<void(const KernelEvent&)>& take) {
  state_->take = &take;
  const int count = ring_buffer__consume(state_->ring.get());
  state_->take = nullptr;
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

Result<BpfDatapath::Losses> BpfDatapath::losses() const {
  const std::uint32_t only = 0;
  TeLosses losses{};
  if (bpf_map_lookup_elem(state_->objects.losses.get(), &only, &losses) != 0)
    return errno_error("read the loss counters");
  return Losses{.events = losses.events, .flows = losses.flows, .unsteered_packets = losses.unsteered_packets};
}

Result<void> BpfDatapath::cleanup(const BpfDatapathOptions& options) {
  const std::vector<std::uint32_t> ids = pinned_program_ids(options.pin_directory);
  Result<void> removed;
  options.in_each_netns([&](std::uint64_t netns) {
    if (removed) removed = detach_filters(options.pin_directory, ids, netns, {});
  });
  if (!removed) return removed;
  if (auto detached = release_attachment_pins(options.pin_directory); !detached) return detached;
  return remove_pins(options.pin_directory);
}

Result<void> BpfDatapath::probe_permission() { return require_permission(); }

Result<void> BpfDatapath::probe_tcx() { return require_tcx(); }

}  // namespace te::agent
