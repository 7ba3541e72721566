#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "kernels/optimizer/optimizer.h"
#include "sim/step/table_rows.h"

// Which parameter server owns which keys (positions of the flat buffer).
namespace reckon {

/// A layer that is an embedding table of which rows travel alone. Its part of a worker's flat
/// buffer has room for the rows of a step, one after the other; servers have all of them.
struct TableKeys {
  std::size_t rows = 0, width = 0;  // of the whole table; 0: it is none
  RowPartition rule = RowPartition::mod;
  explicit operator bool() const { return rows > 0; }
};

/// Groups of layers, each divided among all servers, so that every server has work from the first
/// gradient to the last. A table is a group of its own, whose rows are divided by RowParts, the
/// rule of the forecast.
struct ServerKeys {
  std::vector<ParameterRange> groups;  // in the order of the flat buffer, without gaps
  // A server's share is weights[s] / sum; of rows all have one.
  std::vector<double> weights;
  std::vector<TableKeys> tables = {};  // by group; empty: there are none

  int servers() const { return int(weights.size()); }
  bool is_table(std::size_t group) const { return group < tables.size() && tables[group].rows > 0; }
  RowParts rows(std::size_t group) const;
  /// The keys of `group`, which is no table, that `server` owns; may be empty.
  ParameterRange part(std::size_t group, int server) const;
  /// How many keys of any group it owns.
  std::size_t count_on(std::size_t group, int server) const;
  /// Its keys of `all`, the flat buffer (of a table's keys: the whole table), in their order, and
  /// back.
  std::vector<float> gather(std::size_t group, int server, std::span<const float> all) const;
  void scatter(std::size_t group, int server, std::span<const float> part,
               std::span<float> all) const;
  std::size_t count() const;
};

/// About kParameterServerGroups groups by ServerGroupRule, besides tables. `layers` cover the flat
/// buffer in its order, `tables` says of each whether it is one (empty: none is). Equal weights:
/// shares differ by one key a group at most.
ServerKeys server_keys(std::span<const ParameterRange> layers, std::vector<double> weights,
                       std::span<const TableKeys> tables = {});

/// All that servers and workers must agree on; its digest is compared when a worker comes.
struct ServerJob {
  ServerKeys keys;
  int workers = 1;
  /// Processes of a worker, its ranks: the first of them talks to the servers for all
  /// (worker_exchange.h).
  int ranks_of_worker = 1;
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
  // Members of the rendezvous: all workers' ranks, then the servers.
  int rank_of_worker(int worker) const { return worker * ranks_of_worker; }
  int rank_of_server(int server) const { return workers * ranks_of_worker + server; }
};

}  // namespace reckon
