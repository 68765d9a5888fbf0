// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_pinned_steering.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "common/os/file.h"
#include "common/os/unique_fd.h"
#include "host-agent/io/bpf_map_walk.h"
#include "host-agent/io/bpf_messages.h"

namespace te::agent {
namespace {

using Bytes = std::span<const std::uint8_t>;

struct FreeBtf {
  void operator()(btf* types) const { btf__free(types); }
};
using Btf = std::unique_ptr<btf, FreeBtf>;

/// Where the fields of a flow lie, in bytes from the begin of its key or value.
struct Layout {
  std::size_t ifindex = 0;
  std::size_t destination_qpn = 0;
  std::size_t source = 0;
  std::size_t destination = 0;
  std::size_t steer_port = 0;
};

/// The place of the field called `name`, which must have `bytes` bytes.
Result<std::size_t> place_of(const btf* types, std::uint32_t type_id, std::string_view name, std::size_t bytes) {
  const int resolved = btf__resolve_type(types, type_id);
  const btf_type* type = resolved > 0 ? btf__type_by_id(types, static_cast<std::uint32_t>(resolved)) : nullptr;
  if (type == nullptr || !btf_is_struct(type)) return Error{"its BTF describes no struct"};
  const btf_member* members = btf_members(type);
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    const char* found = btf__name_by_offset(types, members[i].name_off);
    if (found == nullptr || name != found) continue;
    if (btf__resolve_size(types, members[i].type) != static_cast<std::int64_t>(bytes)) {
      return Error{"its field '" + std::string(name) + "' has not " + std::to_string(bytes) + " bytes"};
    }
    return std::size_t{btf_member_bit_offset(type, i)} / 8;
  }
  return Error{"it has no field '" + std::string(name) + "'"};
}

Result<Layout> layout_of(const bpf_map_info& info, std::size_t address_bytes) {
  const BpfMessages messages;
  const Btf types(info.btf_id == 0 ? nullptr : btf__load_from_kernel_by_id(info.btf_id));
  if (!types) return info.btf_id == 0 ? Error{"it has no BTF"} : messages.error("read its BTF", errno);
  Layout layout;
  struct Wanted {
    std::uint32_t type_id;
    const char* name;
    std::size_t bytes;
    std::size_t* place;
  };
  const std::array wanted{Wanted{info.btf_key_type_id, "ifindex", 4, &layout.ifindex},
                          Wanted{info.btf_key_type_id, "destination_qpn", 4, &layout.destination_qpn},
                          Wanted{info.btf_key_type_id, "source", address_bytes, &layout.source},
                          Wanted{info.btf_key_type_id, "destination", address_bytes, &layout.destination},
                          Wanted{info.btf_value_type_id, "steer_port", 2, &layout.steer_port}};
  for (const Wanted& field : wanted) {
    const auto place = place_of(types.get(), field.type_id, field.name, field.bytes);
    if (!place) return place.error();
    if (*place + field.bytes > (field.place == &layout.steer_port ? info.value_size : info.key_size)) {
      return Error{"its field '" + std::string(field.name) + "' lies outside of it"};
    }
    *field.place = *place;
  }
  return layout;
}

template <class T>
T number_at(Bytes bytes, std::size_t place) {
  T number{};
  std::memcpy(&number, bytes.data() + place, sizeof(number));
  return number;
}

template <std::size_t size>
std::array<std::uint8_t, size> address_at(Bytes bytes, std::size_t place) {
  std::array<std::uint8_t, size> address{};
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(place), size, address.begin());
  return address;
}

FlowKey key_at(Bytes key, const Layout& layout, bool v6) {
  FlowKey made;
  made.ifindex = number_at<std::uint32_t>(key, layout.ifindex);
  made.destination_qpn = number_at<std::uint32_t>(key, layout.destination_qpn);
  made.source =
      v6 ? IpAddress::v6(address_at<16>(key, layout.source)) : IpAddress::v4(address_at<4>(key, layout.source));
  made.destination = v6 ? IpAddress::v6(address_at<16>(key, layout.destination))
                        : IpAddress::v4(address_at<4>(key, layout.destination));
  return made;
}

Result<void> read_map(const std::string& path, bool v6, std::vector<PinnedSteering>& into) {
  const UniqueFd map(bpf_obj_get(path.c_str()));
  if (!map) return errno_error("open " + path);
  bpf_map_info info{};
  std::uint32_t size = sizeof info;
  if (bpf_obj_get_info_by_fd(map.get(), &info, &size) != 0) return errno_error("look at " + path);
  const auto layout = layout_of(info, v6 ? 16 : 4);
  if (!layout) return with_context(layout.error(), path);
  return for_each_entry(map.get(), info.key_size, info.value_size, [&](Bytes key, Bytes value) {
    const auto port = number_at<std::uint16_t>(value, layout->steer_port);
    if (port != 0) into.push_back({key_at(key, *layout, v6), port});
  });
}

}  // namespace

Result<std::vector<PinnedSteering>> read_pinned_steering(const std::string& directory) {
  std::vector<PinnedSteering> all;
  if (auto read = read_map(directory + "/flows_v4", false, all); !read) return std::move(read).error();
  if (auto read = read_map(directory + "/flows_v6", true, all); !read) return std::move(read).error();
  return all;
}

}  // namespace te::agent
