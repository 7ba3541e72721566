#pragma once
#include <cstdint>
#include <optional>

#include "executor/comm/socket.h"
#include "executor/train/checkpoint/durable_file.h"

// What a process that outlives a start of its job, or stands by for one, is told by whoever watches
// it: over a socket that it inherits (RunEnvironment::orders).
namespace reckon {

/// To take part in a start of the job.
struct TrainOrder {
  std::int64_t attempt = 0;
  int rank = 0, workers = 1;
  HostPort master;
};

/// The two ends of what orders come through.
struct OrderSockets {
  FileHandle watcher, process;
};
/// Throws FileError.
OrderSockets make_order_sockets();

/// `listener`: where rank 0 meets the others, passed on to it; -1: it is another rank. false: the
/// process is gone.
bool send_order(int watcher, const TrainOrder& order, int listener = -1);
/// To rank 0: all ranks are to leave the mesh behind a step, and to wait for an order.
bool send_regroup(int watcher);

/// The end of the process.
class Orders {
 public:
  /// Takes over what it inherited.
  explicit Orders(int inherited) : socket_(inherited) {}

  struct Received {
    TrainOrder order;
    std::optional<Socket> listener;  // rank 0's
  };
  /// The next order to train. nullopt: this process was asked to stop, or nobody watches it.
  std::optional<Received> wait();
  /// Has an order to regroup come? Does not wait.
  bool told_to_regroup();

 private:
  FileHandle socket_;
};

}  // namespace reckon
