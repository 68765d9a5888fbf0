// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_messages.h"

#include <bpf/libbpf.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace te::agent {
namespace {

constexpr std::size_t kMaxTextBytes = 4000;

thread_local std::string* catching = nullptr;  // NOLINT: libbpf's callback takes no context

[[gnu::format(printf, 2, 0)]] int take_message(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN || catching == nullptr || catching->size() > kMaxTextBytes) return 0;
  std::array<char, kMaxTextBytes> line{};
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  if (length > 0) catching->append(line.data());
  return length;
}

}  // namespace

BpfMessages::BpfMessages() : outer_(catching) {
  libbpf_set_print(take_message);
  catching = &text_;
}

BpfMessages::~BpfMessages() { catching = outer_; }

Error BpfMessages::error(const std::string& doing, int error_number) const {
  std::string message = doing + ": " + std::strerror(error_number);
  if (error_number == EPERM || error_number == EACCES) message += "; run as root (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)";
  if (!text_.empty()) message += "; libbpf: " + text_;
  while (message.ends_with('\n')) message.pop_back();
  return Error{message};
}

}  // namespace te::agent
