// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/os/file.h"

namespace te::agent {
namespace {

using Sets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

__user_cap_header_struct this_thread() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

bool is_kept(int capability, std::span<const int> kept) {
  return std::find(kept.begin(), kept.end(), capability) != kept.end();
}

}  // namespace

Result<void> keep_only_capabilities(std::span<const int> kept) {
  // The bounding set needs CAP_SETPCAP; without it, no_new_privs alone keeps programs from giving anything back.
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
    if (!is_kept(capability, kept)) ::prctl(PR_CAPBSET_DROP, capability);
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error("set no_new_privs");
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return errno_error("clear ambient capabilities");
  Sets sets{};
  auto header = this_thread();
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return errno_error("read this process's capabilities");
  Sets wanted{};
  for (const int capability : kept) {
    const auto number = static_cast<unsigned>(capability);
    wanted.at(CAP_TO_INDEX(number)).permitted |= CAP_TO_MASK(number);
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::uint32_t mask = sets[i].permitted & wanted[i].permitted;
    sets[i] = {.effective = mask, .permitted = mask, .inheritable = 0};
  }
  header = this_thread();
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return errno_error("give up capabilities");
  return {};
}

}  // namespace te::agent
