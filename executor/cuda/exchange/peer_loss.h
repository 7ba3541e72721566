#pragma once
#include <functional>
#include <memory>
#include <string>

#include "executor/comm/errors.h"
#include "sim/base/quantity.h"

namespace reckon::cuda {

/// How a rank learns that another is lost while its device waits for it: NCCL waits for ever, so
/// what waits has to be ended from elsewhere. Where that does not leave the device idle in time,
/// the process ends with kExitLostPeer, and somebody else takes its place.
class PeerLoss {
 public:
  /// `watch`: calls `act` from another thread once a rank is lost (Membership::on_loss()); `error`:
  /// the loss, as it ended `what` (Membership::lost_peer()). `patience`: from a loss until all that
  /// on_loss() was given has returned and `device` has nothing to do any more.
  PeerLoss(const std::function<void(std::function<void()> act)>& watch,
           std::function<CommError(const std::string& what)> error, int device,
           Seconds patience = kPatience);
  ~PeerLoss();
  PeerLoss(const PeerLoss&) = delete;
  PeerLoss& operator=(const PeerLoss&) = delete;

  /// Before anything is ended: what devices make from then on may be of what never came.
  bool is_lost() const;
  /// Calls `act` in a thread of its own, so that none waits for another's end: what one
  /// communicator's end waits for may be another's. Once this object is gone it does not begin.
  void on_loss(std::function<void()> act) const;
  CommError error(const std::string& what) const { return error_(what); }

  /// As long as pods have to meet again. An abort may hang: NVIDIA/nccl issues 549, 829 and 1013.
  static constexpr Seconds kPatience{60};

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::function<CommError(const std::string& what)> error_;
};

}  // namespace reckon::cuda
