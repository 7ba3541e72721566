#pragma once
#include <memory>

#include "executor/comm/communicator.h"
#include "sim/base/quantity.h"

namespace reckon {

/// What collectives and messages took of the thread that called them, waits for other ranks among
/// it, and the payload that this rank sent.
struct CommunicationTaken {
  Seconds time{};
  Bytes sent{};
};

/// By what the ranks share of the model.
struct ModelExchanges {
  CommunicationTaken tensor, context, expert;

  CommunicationTaken all() const {
    return {tensor.time + context.time + expert.time, tensor.sent + context.sent + expert.sent};
  }
};

/// Hands each call on to `group` and adds what it took to `taken`. Both must outlive it. A sum is
/// counted as a ring's, 2 (n - 1) / n of the values [Patarasuk & Yuan 2009], which is also what
/// each rank sends where sums are direct.
std::unique_ptr<Communicator> make_metered_communicator(Communicator& group,
                                                        CommunicationTaken& taken);

}  // namespace reckon
