// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/bpf_messages.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace te::agent {
namespace {

constexpr std::size_t kMaxTextBytes = 3000;

thread_local std::string* catching = nullptr;  // NOLINT: libbpf's callback takes no context

/// Keeps the end of what is said: the verifier says what it minds in its last lines.
[[gnu::format(printf, 2, 0)]] int take_message(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN || catching == nullptr) return 0;
  char* line = nullptr;
  const int length = ::vasprintf(&line, format, arguments);
  if (length < 0) return 0;
  catching->append(line, static_cast<std::size_t>(length));
  std::free(line);
  if (catching->size() > kMaxTextBytes) catching->replace(0, catching->size() - kMaxTextBytes, "...");
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
  if (error_number == EPERM) message += "; run as root (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)";
  if (!text_.empty()) message += "; libbpf: " + text_;
  while (message.ends_with('\n')) message.pop_back();
  return Error{message};
}

}  // namespace te::agent
