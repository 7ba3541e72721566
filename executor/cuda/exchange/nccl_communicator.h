#pragma once
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/cuda/exchange/group.h"
#include "executor/cuda/exchange/peer_loss.h"

// Collectives between devices by NCCL: one device a rank.
namespace reckon::cuda {

/// The interface of all communicators, for spans in the memory of this rank's device; control
/// messages (`broadcast`, `send`, `receive` of bytes) too. Sums are NCCL's: the same every time for
/// one topology and one version, in an order that is not the ranks'. Also sums gradients behind the
/// backward pass.
class NcclCommunicator : public Communicator, public ReducingGroup {
 public:
  int rank() const override = 0;
  int size() const override = 0;
};

/// Collective over `control`, a communicator of the same ranks on their hosts, which carries NCCL's
/// id and outlives nothing: it is used here alone. The current device is this rank's. Throws
/// DeviceError: where there is no NCCL (why_no_nccl), and where two ranks of a host would share a
/// device, naming both.
/// `loss`: of a rank of the job, which outlives it: what waits for NCCL then ends, and throws
/// CommError, as do all calls after it; nullptr: nobody tells, and NCCL waits for ever.
std::unique_ptr<NcclCommunicator> make_nccl_communicator(Communicator& control, int device,
                                                         const PeerLoss* loss = nullptr);

}  // namespace reckon::cuda
