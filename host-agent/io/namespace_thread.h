// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/result.h"

namespace te::agent {

/// A thread that lives in another network namespace and works on request.
class NamespaceThread {
 public:
  /// Enters the namespace whose file is `path`: /run/netns/NAME, /proc/PID/ns/net.
  static Result<std::unique_ptr<NamespaceThread>> enter(const std::string& path);
  NamespaceThread(const NamespaceThread&) = delete;
  NamespaceThread& operator=(const NamespaceThread&) = delete;
  ~NamespaceThread();

  /// Does `work` in that thread and waits for its end.
  void run(const std::function<void()>& work);
  /// False when `path` leads nowhere, or to another namespace.
  [[nodiscard]] bool is_behind(const std::string& path) const;
  /// Its inode; 0: it is the namespace of the thread that made this.
  [[nodiscard]] std::uint64_t number() const { return is_own_ ? 0 : inode_; }

 private:
  NamespaceThread(dev_t device, ino_t inode, bool is_own) : device_(device), inode_(inode), is_own_(is_own) {}
  Result<void> start();
  void serve();

  dev_t device_;
  ino_t inode_;
  bool is_own_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace te::agent
