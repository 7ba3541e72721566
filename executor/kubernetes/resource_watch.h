#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "executor/kubernetes/kubectl.h"
#include "executor/launch/line_reader.h"

namespace reckon::kubernetes {

/// What changes in a list of objects, as the API server tells it: a list, then a watch from the
/// version of that list on [Kubernetes API concepts, "Efficient detection of changes"]. A watch
/// that ends, expires (410) or falls silent is followed by a new list; what went missing between
/// the two is told as deleted. A server that is away is asked again, later and later.
class ResourceWatch {
 public:
  struct Events {
    std::function<void(const Json& object)> changed;  // new, or changed
    std::function<void(const Json& object)> deleted;  // its last known state
    /// The server is away, or back ("").
    std::function<void(const std::string& trouble)> trouble;
  };
  /// `path`: "/api/v1/namespaces/x/pods"; `selector`: of labels, "" for all. A watch lives for
  /// `life` at most.
  ResourceWatch(const Kubectl& kubectl, std::string path, const std::string& selector,
                Events events, Seconds life = Seconds{60});

  /// Lists where it is time to; reads what the watch has told. Throws KubectlError for what does
  /// not pass by itself, such as a missing permission.
  void poll();
  /// Readable when there is something; -1: nothing is open.
  int descriptor() const { return process_ ? process_->output() : -1; }
  /// All objects are known, at least once.
  bool listed() const { return listed_; }
  /// The server did, when it was asked last.
  bool answers() const { return !in_trouble_; }

 private:
  using Clock = std::chrono::steady_clock;
  void list();
  void start_watch(const std::string& version);
  void on_line(std::string_view line);
  void on_failure(const KubectlError& error);
  void end_watch();
  void tell_trouble(const std::string& what);

  const Kubectl& kubectl_;
  std::string path_, selector_;
  Events events_;
  Seconds life_;
  std::unique_ptr<ChildProcess> process_;
  LineReader lines_;
  std::map<std::string, Json> known_;  // by uid
  Backoff backoff_;
  Clock::time_point next_list_{}, started_{};
  bool listed_ = false, expired_ = false, in_trouble_ = false;
};

/// For a query of a URL.
std::string percent_encoded(const std::string& text);

}  // namespace reckon::kubernetes
