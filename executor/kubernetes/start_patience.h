#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "executor/kubernetes/pods/pod_view.h"
#include "sim/base/quantity.h"

namespace reckon::kubernetes {

/// How long pods may take until they run, and when that is hopeless. Time in which the cluster did
/// not answer does not count: what happened to the pods in it is not known.
class StartPatience {
 public:
  struct Limits {
    Seconds pending;  // without a node for so long there is no room; with one, no start
    Seconds image;    // from the first word of trouble with its image
  };
  using Tell = std::function<void(const std::string&)>;
  /// `tell` gets each reason why a pod waits, once.
  StartPatience(Limits limits, Tell tell) : limits_(limits), tell_(std::move(tell)) {}

  /// To be called again and again; `answers`: the cluster does.
  void pass(bool answers);

  struct Verdict {
    int code = 0;  // kNoRoom, kNoImage
    std::string words;
  };
  /// Of a pod that has not started; nullopt: it may yet. `pod` is nullptr where its Job has not
  /// made it, for the reason `no_pod` ("": none is known).
  std::optional<Verdict> look_at(int rank, const std::string& name, const PodView* pod,
                                 const std::string& no_pod);

  static constexpr int kNoRoom = 1, kNoImage = 127;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::optional<Seconds> placed, troubled;  // since when, in waited_
  };
  std::optional<Verdict> look_at_unplaced(const PodView* pod, const std::string& no_pod);
  std::optional<Verdict> look_at_placed(Waiting& waiting, const std::string& name,
                                        const PodView& pod);
  void tell_once(const std::string& text);

  Limits limits_;
  Tell tell_;
  Seconds waited_{};
  Clock::time_point last_ = Clock::now();
  std::map<int, Waiting> waiting_;  // by rank
  std::set<std::string> told_;
};

}  // namespace reckon::kubernetes
