#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "executor/comm/communicator.h"
#include "sim/base/quantity.h"

namespace reckon {

/// Whether all ranks, each of which writes its part of checkpoints into its `directory`, have that
/// of rank 0: it makes a file of a random name there, and the others look for it, for `patience`,
/// as storage that machines share may show a new file late. Collective. Throws SettingsDiffer, on
/// every rank, which names the first that does not see it. `host_of`: of a rank, for the message.
void require_shared_output(Communicator& ranks, const std::filesystem::path& directory,
                           const std::function<std::string(int rank)>& host_of,
                           Seconds patience = Seconds{5});

}  // namespace reckon
