#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sim/base/quantity.h"

namespace reckon {

/// The page of metrics of a program of this machine, read now and then by a thread of its own: a
/// program that is slow to answer delays nobody. HTTP/1.0 at 127.0.0.1; a program that does not
/// listen yet is asked again.
class LocalMetrics {
 public:
  LocalMetrics(int port, std::string path, Seconds every = Seconds{1});
  ~LocalMetrics();
  LocalMetrics(const LocalMetrics&) = delete;
  LocalMetrics& operator=(const LocalMetrics&) = delete;

  /// The newest page, once.
  std::optional<std::string> take();

 private:
  void run(const std::stop_token& stop);

  int port_;
  std::string path_;
  Seconds every_;
  std::mutex mutex_;
  std::optional<std::string> page_;
  std::jthread thread_;
};

}  // namespace reckon
