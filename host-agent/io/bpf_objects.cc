// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_objects.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "bpf/te_abi.h"
#include "common/os/file.h"
#include "host-agent/io/bpf_icrc_table.h"
#include "host-agent/io/bpf_messages.h"
#include "roce_te.skel.h"

namespace te::agent {
namespace {

namespace fs = std::filesystem;

// Pinned last: a directory without it was left by an agent that died while pinning.
constexpr const char* kAbiPin = "abi";
// Folder for the pins of those who take over, until they have.
constexpr const char* kSuccessor = "next";

struct Pin {
  const char* name;
  UniqueFd BpfObjects::*object;
};

// No dots: bpffs keeps names with dots for itself.
constexpr std::array kPins{
    Pin{"program_egress", &BpfObjects::egress_program},
    Pin{"program_ingress", &BpfObjects::ingress_program},
    Pin{"program_control", &BpfObjects::control_program},
    Pin{"flows_v4", &BpfObjects::flows_v4},
    Pin{"flows_v6", &BpfObjects::flows_v6},
    Pin{"events", &BpfObjects::events},
    Pin{"losses", &BpfObjects::losses},
};

struct DestroySkeleton {
  void operator()(roce_te* skeleton) const { roce_te::destroy(skeleton); }
};

Result<void> require_bpffs(const fs::path& directory) {
  fs::path existing = directory;
  std::error_code ignored;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) existing = existing.parent_path();
  struct statfs stats {};
  if (::statfs(existing.c_str(), &stats) != 0) return errno_error("look at " + existing.string());
  if (static_cast<std::uint64_t>(stats.f_type) != BPF_FS_MAGIC) {
    return Error{existing.string() + " is not on a bpffs, programs cannot be pinned in " + directory.string() +
                 "; mount one (mount -t bpf bpf DIR) and set `bpffs` to it"};
  }
  return {};
}

Result<void> fill_icrc_rows(int map_fd) {
  const std::vector<TeIcrcRow> rows = make_icrc_rows();
  std::vector<std::uint32_t> keys(rows.size());
  std::iota(keys.begin(), keys.end(), 0U);
  auto count = static_cast<std::uint32_t>(rows.size());
  if (bpf_map_update_batch(map_fd, keys.data(), rows.data(), &count, nullptr) != 0 || count != rows.size()) {
    return errno_error("fill the ICRC table");
  }
  return {};
}

Result<UniqueFd> duplicate(int fd, const std::string& name) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno_error("duplicate the descriptor of " + name);
  return UniqueFd(copy);
}

Result<BpfObjects> load() {
  BpfMessages messages;
  const std::unique_ptr<roce_te, DestroySkeleton> skeleton(roce_te::open_and_load());
  if (!skeleton) return messages.error("load the tc programs into the kernel", errno);
  if (auto filled = fill_icrc_rows(bpf_map__fd(skeleton->maps.te_icrc_rows)); !filled) return std::move(filled).error();
  const std::array<int, kPins.size()> fds{
      bpf_program__fd(skeleton->progs.te_egress),  bpf_program__fd(skeleton->progs.te_ingress),
      bpf_program__fd(skeleton->progs.te_control), bpf_map__fd(skeleton->maps.te_flows_v4),
      bpf_map__fd(skeleton->maps.te_flows_v6),     bpf_map__fd(skeleton->maps.te_events),
      bpf_map__fd(skeleton->maps.te_losses),
  };
  BpfObjects objects;
  for (std::size_t i = 0; i < kPins.size(); ++i) {
    auto fd = duplicate(fds[i], kPins[i].name);
    if (!fd) return std::move(fd).error();
    objects.*kPins[i].object = std::move(*fd);
  }
  return objects;
}

Result<void> pin(int fd, const fs::path& path) {
  if (bpf_obj_pin(fd, path.c_str()) != 0) return errno_error("pin " + path.string());
  return {};
}

Result<void> pin_all(const BpfObjects& objects, const fs::path& directory) {
  for (const Pin& entry : kPins) {
    if (auto pinned = pin((objects.*entry.object).get(), directory / entry.name); !pinned) return pinned;
  }
  const UniqueFd abi(
      bpf_map_create(BPF_MAP_TYPE_ARRAY, "te_abi", sizeof(std::uint32_t), sizeof(std::uint32_t), 1, nullptr));
  const std::uint32_t only = 0;
  const std::uint32_t version = kTeAbiVersion;
  if (!abi || bpf_map_update_elem(abi.get(), &only, &version, BPF_ANY) != 0)
    return errno_error("record the ABI version");
  return pin(abi.get(), directory / kAbiPin);
}

Result<BpfObjects> adopt(const fs::path& directory) {
  BpfObjects objects;
  for (const Pin& entry : kPins) {
    const std::string path = directory / entry.name;
    UniqueFd fd(bpf_obj_get(path.c_str()));
    if (!fd)
      return with_context(errno_error("open " + path), "adopt pinned programs (`host-agent cleanup` starts anew)");
    objects.*entry.object = std::move(fd);
  }
  return objects;
}

Result<BpfObjects> load_and_pin(const fs::path& directory) {
  auto loaded = load();
  if (!loaded) return loaded;
  if (auto removed = remove_pins(directory); !removed) return std::move(removed).error();
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return errno_error("make " + directory.string(), error.value());
  if (auto pinned = pin_all(*loaded, directory); !pinned) return std::move(pinned).error();
  return loaded;
}

}  // namespace

Result<std::optional<std::uint32_t>> pinned_abi_version(const std::string& directory) {
  const fs::path path = fs::path(directory) / kAbiPin;
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) return errno_error("look into " + directory, error.value());
    return std::optional<std::uint32_t>();
  }
  const UniqueFd abi(bpf_obj_get(path.c_str()));
  if (!abi) return errno_error("open " + path.string());
  const std::uint32_t only = 0;
  std::uint32_t version = 0;
  if (bpf_map_lookup_elem(abi.get(), &only, &version) != 0) return errno_error("read " + path.string());
  return std::optional(version);
}

Result<BpfObjects> BpfObjects::open(const std::string& directory) {
  const fs::path path(directory);
  if (auto on_bpffs = require_bpffs(path); !on_bpffs) return std::move(on_bpffs).error();
  std::error_code error;
  if (fs::exists(path / kAbiPin, error)) return adopt(path);
  if (error) return errno_error("look into " + directory, error.value());
  return load_and_pin(path);
}

Result<BpfObjects> BpfObjects::open_successor(const std::string& directory) {
  return load_and_pin(fs::path(directory) / kSuccessor);
}

Result<void> succeed_pins(const std::string& directory) {
  const fs::path path(directory);
  std::error_code error;
  const auto move = [&](const char* name) {
    if (!error) fs::rename(path / kSuccessor / name, path / name, error);
  };
  for (const Pin& entry : kPins) move(entry.name);
  move(kAbiPin);
  if (!error) fs::remove(path / kSuccessor, error);
  if (error) return errno_error("put the new pins into " + directory, error.value());
  return {};
}

Result<std::uint32_t> program_id(int program_fd) {
  bpf_prog_info info{};
  std::uint32_t size = sizeof info;
  if (bpf_obj_get_info_by_fd(program_fd, &info, &size) != 0) return errno_error("ask for a program's id");
  return info.id;
}

Result<void> remove_pins(const std::string& directory) {
  const fs::path path(directory);
  std::error_code error;
  if (fs::exists(path / kSuccessor, error)) {
    if (auto removed = remove_pins(path / kSuccessor); !removed) return removed;
  }
  const auto remove = [&path, &error](const char* name) {
    if (!error) fs::remove(path / name, error);
  };
  // The version goes first, as it came last: what is left of a removal cut short is not adopted.
  remove(kAbiPin);
  for (const Pin& entry : kPins) remove(entry.name);
  // Links or pins of somebody else keep the directory.
  if (!error && fs::is_empty(path, error)) fs::remove(path, error);
  if (error && error != std::errc::no_such_file_or_directory)
    return errno_error("remove pins in " + directory, error.value());
  return {};
}

}  // namespace te::agent
