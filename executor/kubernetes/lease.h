#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "executor/kubernetes/kubectl.h"
#include "executor/kubernetes/lease_rule.h"

// The Lease NAME-launcher of a run, by which one launcher at a time acts on it.
namespace reckon::kubernetes {

std::string lease_object_of(const std::string& run);
/// nullopt: it is no Lease.
std::optional<LeaseRecord> lease_record(const Json& lease);
/// "launcher on HOST (process 123)", of a holder's identity.
std::string launcher_text(const std::string& identity);
/// HOST_PID_RANDOM, of this process; another one at each call.
std::string own_lease_identity();

/// Another launcher has taken the run over: what is known of it here no longer holds. Not a
/// runtime_error: nobody between the run and its command may take it for a failure.
class LeaseLost : public std::exception {
 public:
  explicit LeaseLost(std::string holder) : holder_(std::move(holder)) {}
  const char* what() const noexcept override { return "another launcher has taken the run over"; }
  const std::string& holder() const { return holder_; }  // "": nobody any more

 private:
  std::string holder_;
};

class LauncherLease {
 public:
  enum class State {
    waiting,   // somebody else has it, or may have
    held,      // it is renewed from here on, until the end of this object, which gives it back
    forbidden  // by the cluster's rules: nothing keeps others from acting
  };
  /// Nothing is asked yet. `fresh`: the run is being made now (LeaseRule).
  LauncherLease(const Kubectl& kubectl, std::string run, bool fresh, LeaseTerms terms = {});
  /// Gives it back, if it is held.
  ~LauncherLease();
  LauncherLease(const LauncherLease&) = delete;
  LauncherLease& operator=(const LauncherLease&) = delete;

  /// Asks the cluster where it is time to; not to be called once it is held. Throws KubectlError
  /// for what does not pass by itself; what passes is in trouble().
  State look();
  /// look() for as long as it waits and `goes_on`, ten times a second.
  State wait(const std::function<bool()>& goes_on);
  const std::string& trouble() const { return trouble_; }
  /// Of another launcher; "": nobody holds it.
  std::string holder() const;
  /// It was renewed while this one looked.
  bool holder_lives() const;
  /// "launcher on HOST (process 123), which renewed its lease at 2026-11-28T22:06:46Z".
  std::string holder_text() const;

  /// Held, and renewed in time; always where it is forbidden.
  bool may_act() const;
  /// The same kubectl, which changes the cluster only while may_act().
  Kubectl guarded() const;
  /// From here on stop_asked() looks at the run's phase.
  void look_for_stop();
  /// `reckon stop` has marked the run.
  bool stop_asked() const;
  /// What has changed since it was asked last, as a sentence; "": nothing. Throws LeaseLost.
  std::string news();
  /// Ends the renewals and does not give it back: its object is about to be deleted.
  void forget();

 private:
  LeaseRule::Answer ask(const LeaseRule::Request& request, Seconds limit);
  void renew();  // of the thread, until it is to end
  void give_back();
  void look_at_phase();
  void end_thread();

  const Kubectl kubectl_;
  const std::string run_, identity_;
  const LeaseTerms terms_;
  std::string trouble_;
  bool forbidden_ = false;
  mutable std::mutex mutex_;  // of what follows
  LeaseRule rule_;
  std::string acquired_;
  bool ends_ = false, looks_for_stop_ = false, stop_asked_ = false, lapsed_ = false;
  std::condition_variable wakes_;
  std::thread thread_;
};

}  // namespace reckon::kubernetes
