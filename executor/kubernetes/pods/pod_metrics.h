#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "executor/kubernetes/kubectl.h"

namespace reckon::kubernetes {

/// The page of metrics of one pod, read now and then through the API server
/// (pods/proxy), so that whoever watches need not reach the pod.
class PodMetrics {
 public:
  using OnPage = std::function<void(std::string_view page)>;
  PodMetrics(const Kubectl& kubectl, const std::string& pod, int port, const std::string& path,
             OnPage on_page);

  /// Asks where the last answer is `every` old; never waits.
  void poll(Seconds every);
  /// It was read within the last minute.
  bool reads() const { return Clock::now() - answered_ < std::chrono::minutes(1); }
  /// What it could not be read for; "": it could, the last time.
  const std::string& trouble() const { return trouble_; }

 private:
  using Clock = std::chrono::steady_clock;
  void on_end(const ProcessEnd& end);

  const Kubectl& kubectl_;
  std::string path_;
  OnPage on_page_;
  std::unique_ptr<ChildProcess> process_;
  std::string page_, errors_, trouble_;
  Clock::time_point asked_{}, answered_{};
};

}  // namespace reckon::kubernetes
