#pragma once
#include <functional>
#include <optional>
#include <string>

#include "executor/kubernetes/lease.h"
#include "executor/launch/gang.h"

namespace reckon::cli {

/// A launcher's lease on a run in a cluster, as its command takes it and goes by it.
class RunLease {
 public:
  /// `made_now`: a new run; who holds its lease already is making it too, which is refused.
  RunLease(const kubernetes::Kubectl& kubectl, std::string run, bool made_now)
      : run_(std::move(run)), made_now_(made_now), lease_(kubectl, run_, made_now) {}

  /// Takes it; stands by, and says for whom, for as long as somebody else has it. The exit code
  /// where it does not come to that; nullopt: it is held, or the cluster forbids it, which is said.
  std::optional<int> take();
  /// Somebody else had it first.
  bool stood_by() const { return stood_by_; }
  /// Changes the cluster only while the lease is held.
  kubernetes::Kubectl kubectl() const { return lease_.guarded(); }
  void look_for_stop() { lease_.look_for_stop(); }
  /// What the run is asked to do: by signals, or by `reckon stop`. `say` is told what changes.
  /// Throws LeaseLost.
  StopRequest request(const std::function<void(const std::string&)>& say);

 private:
  bool tell_whom_it_waits_for();

  std::string run_;
  bool made_now_, stood_by_ = false;
  std::string told_;
  kubernetes::LauncherLease lease_;
};

/// That another launcher has taken the run over, for the user.
std::string lost_text(const std::string& run, const kubernetes::LeaseLost& lost);

}  // namespace reckon::cli
