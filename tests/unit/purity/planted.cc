// SPDX-License-Identifier: Apache-2.0
// What no pure library may do: the check must find each of these.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>

namespace te {

long planted();

long planted() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::thread([] { usleep(1); }).join();
  const int channel = socket(AF_INET, SOCK_DGRAM, 0);
  const int file = open("/dev/null", O_RDONLY);
  std::FILE* stream = std::fopen("/dev/null", "r");
  std::filebuf input;
  input.open("/dev/null", std::ios::in);
  return now.tv_nsec + channel + file + (stream != nullptr ? 1 : 0) + (input.is_open() ? 1 : 0) +
         std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace te
