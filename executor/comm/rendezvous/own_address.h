#pragma once
#include <functional>
#include <string>
#include <vector>

#include "executor/comm/rendezvous/worker_identity.h"

namespace reckon {

/// What a name means on this machine; empty: that cannot be told (now).
using Resolve = std::function<std::vector<std::string>(const std::string& host)>;

/// The address by which the others are to reach this process, of what --address says: a name as an
/// address, of the family by which the master is reached where there are several. "": that by which
/// it reaches rank 0. Refused is one that leads back to this machine where rank 0 is elsewhere.
Expected<std::string> own_address(const WorkerIdentity& me, const Resolve& resolve = addresses_of);

}  // namespace reckon
