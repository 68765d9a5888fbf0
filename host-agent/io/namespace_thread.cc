// SPDX-License-Identifier: Apache-2.0
#include "host-agent/io/namespace_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "common/os/file.h"
#include "common/os/unique_fd.h"

namespace te::agent {
namespace {

constexpr const char* kOwnNamespace = "/proc/thread-self/ns/net";

/// Signals are for the main thread: one that starts while this lives gets none.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

std::string advice(int error_number) {
  switch (error_number) {
    case EPERM:
      return " (needs CAP_SYS_ADMIN)";
    case EACCES:
      return " (needs CAP_SYS_PTRACE for /proc/PID/ns/net; a file below /run/netns does not)";
    case EINVAL:
      return " (it is no network namespace)";
    default:
      return "";
  }
}

}  // namespace

Result<std::unique_ptr<NamespaceThread>> NamespaceThread::enter(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0) {
    const int number = errno;
    return errno_error("open network namespace " + path + advice(number), number);
  }
  struct stat own {};
  const bool is_own = ::stat(kOwnNamespace, &own) == 0 && own.st_dev == found.st_dev && own.st_ino == found.st_ino;
  std::unique_ptr<NamespaceThread> entered(new NamespaceThread(found.st_dev, found.st_ino, is_own));
  if (auto started = entered->start(); !started) return with_context(std::move(started).error(), path);
  int failed = 0;
  if (!is_own) {
    entered->run([&] {
      if (::setns(file.get(), CLONE_NEWNET) != 0) failed = errno;
    });
  }
  if (failed != 0) return errno_error("enter network namespace " + path + advice(failed), failed);
  return entered;
}

NamespaceThread::~NamespaceThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<void> NamespaceThread::start() {
  const NoSignals quiet;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& failed) {
    return errno_error("start a thread", failed.code().value());
  }
  return {};
}

void NamespaceThread::run(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  changed_.notify_all();
  changed_.wait(lock, [this] { return work_ == nullptr; });
}

void NamespaceThread::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ != nullptr || ending_; });
    if (work_ == nullptr) return;
    (*work_)();
    work_ = nullptr;
    changed_.notify_all();
  }
}

bool NamespaceThread::is_behind(const std::string& path) const {
  struct stat now {};
  if (::stat(path.c_str(), &now) == 0) return now.st_dev == device_ && now.st_ino == inode_;
  // Without the capabilities of the start, the file of another user's process may not be looked at; it is there,
  // though.
  return errno == EACCES || errno == EPERM;
}

}  // namespace te::agent
