#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "executor/comm/socket.h"
#include "executor/train/checkpoint/durable_file.h"

// What a process that outlives a start of its job, or stands by for one, is told by whoever watches
// it: over a socket that it inherits (RunEnvironment::orders), or in a file (pod_orders.h).
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
  /// Of a pod, which keeps its part: the file says the number of the start.
  Orders(std::filesystem::path file, const TrainOrder& part)
      : file_(std::move(file)), part_(part) {}

  struct Received {
    TrainOrder order;
    std::optional<Socket> listener;  // rank 0's
  };
  /// The next order to train. nullopt: this process was asked to stop, or nobody watches it.
  std::optional<Received> wait();
  /// Has an order to regroup come? Does not wait.
  bool told_to_regroup();
  bool of_a_pod() const { return !file_.empty(); }

 private:
  std::optional<Received> wait_for_socket();
  std::optional<Received> wait_for_file();

  FileHandle socket_;
  std::filesystem::path file_;  // empty: by the socket
  TrainOrder part_;
  std::int64_t newest_ = -1;  // of the file, that was taken
};

}  // namespace reckon
