#pragma once
#include <optional>
#include <span>
#include <vector>

#include "sim/scenario/plan.h"
#include "sim/step/compute.h"
#include "sim/step/table_rows.h"

// What of a model is on which parameter server, and what of it a step moves (docs/MODELS.md,
// "Parameter servers").
namespace reckon {

/// Bytes that servers share.
struct ServerBytes {
  Bytes size{};
  std::vector<Bytes> shards;  // by server; empty: each has as much

  Bytes on(int server, int servers) const {
    return shards.empty() ? size / double(servers) : shards[std::size_t(server)];
  }
};

/// One layer group, in the order of the forward pass.
struct ServerGroup {
  Bytes size{};  // of its variables, and of their gradients, as far as a worker's step moves them
  Seconds forward{}, backward{};
  std::vector<Bytes> shards;  // by server; empty: each has as much
  ServerBytes ids = {};  // of rows, beside: with the gradients, and with the request for values
  /// Of variables that a synchronous step's sum of gradients changes: of rows those of all workers.
  std::optional<ServerBytes> updated = {};  // nullopt: what is moved

  Bytes values_on(int server, int servers) const {
    return shards.empty() ? size / double(servers) : shards[std::size_t(server)];
  }
  Bytes updated_on(int server, int servers) const {
    return updated ? updated->on(server, servers) : values_on(server, servers);
  }
};

/// Which server each variable is on, by bytes: variables larger than `partition` (0: none) are cut
/// into equal pieces, then pieces are placed in their order by the rule. The sum over servers is
/// the variables'. Rule `even`: an equal part of each.
std::vector<std::vector<Bytes>> placed_on_servers(std::span<const Bytes> variables, int servers,
                                                  ServerShards rule, Bytes partition);

/// Samples of which a worker's step computes the gradient: of all its accelerators and
/// micro-batches.
double samples_of_worker(const PlannedWorkload& job);

/// Groups of about equal bytes, at most `count`, and what of each is on which of the servers. Of an
/// embedding table the different rows that a worker's samples name in the mean (DrawnRows), placed
/// where the table's pieces are: by rule `even` a piece for each server, else as
/// placed_on_servers() cuts a variable of its size; rows go to pieces by ParameterServers::rows.
/// Where no server has half a percent more than the mean they count as alike.
std::vector<ServerGroup> server_groups(const PlannedWorkload& job, const ComputeTimes& times,
                                       int count, int servers, int live_workers);

/// Of embedding tables whose rows alone travel: their parameters, and of them those that an
/// accelerator has of a step's rows.
struct PulledTables {
  double parameters = 0, pulled = 0;  // numbers of weights
};
PulledTables pulled_tables(const PlannedWorkload& job);

/// Bytes of trainable variables (fp32) that each server holds; of them those that travel whole, of
/// which a server keeps a buffer of gradients.
struct HeldVariables {
  std::vector<Bytes> by_server, buffered;
  Bytes largest_piece{};  // variable, or piece of one, that one server holds
};
HeldVariables variables_held(const PlannedWorkload& job, int servers);

}  // namespace reckon
