#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "kernels/optimizer.h"

// Which parameter server owns which keys (positions of the flat buffer).
namespace reckon {

/// Groups of layers, each divided among all servers, so that every server has work from the first
/// gradient to the last.
struct ServerKeys {
  std::vector<ParameterRange> groups;  // in the order of the flat buffer, without gaps
  std::vector<double> weights;         // a server's share is weights[s] / sum

  int servers() const { return int(weights.size()); }
  /// The keys of `group` that `server` owns; may be empty.
  ParameterRange part(std::size_t group, int server) const;
  std::size_t count() const;
};

/// About kParameterServerGroups groups by ServerGroupRule. `layers` cover the flat buffer in its
/// order. Equal weights: shares differ by one key a group at most.
ServerKeys server_keys(std::span<const ParameterRange> layers, std::vector<double> weights);

/// All that servers and workers must agree on; its digest is compared when a worker comes.
struct ServerJob {
  ServerKeys keys;
  int workers = 1;
  bool synchronous = true;
  /// Synchronous: a step takes the first workers - backup_workers pushes of each group, scaled up
  /// to all; later ones are dropped.
  int backup_workers = 0;
  /// Asynchronous: steps that a worker may lead the slowest; 0: any number. A worker begins step k
  /// when all have finished step k - staleness - 1 [Ho et al. 2013].
  int staleness = 0;
  /// Synchronous: values go out when every worker has pushed everything to every server, not group
  /// by group: push and pull do not overlap.
  bool phases_apart = false;
  OptimizerRule optimizer;
  std::vector<TrainedRange> trained;

  std::uint64_t digest() const;
};

}  // namespace reckon
