#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
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

/// A pod is one rank or several, one a process.
struct RankOfPod {
  int ranks = 1, number = 0;  // of the pod; this one among them
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
  /// Of a rank of a pod, whose orders are the pod's. `own_part`: what a number alone means
  /// (PodOrder::own_part); nullopt: such a one is refused. `why_not`: why the job has no such part;
  /// "": it has. What is refused is said on standard error, and waited on.
  Orders(std::filesystem::path file, std::optional<TrainOrder> own_part,
         std::function<std::string(const TrainOrder&)> why_not, RankOfPod me = {})
      : file_(std::move(file)),
        own_part_(std::move(own_part)),
        why_not_(std::move(why_not)),
        me_(me) {}

  struct Received {
    TrainOrder order;
    std::optional<Socket> listener;  // rank 0's
  };
  /// The next order to train. nullopt: this process was asked to stop, or nobody watches it.
  std::optional<Received> wait();
  /// Has an order to regroup come? Of a pod: one for a later start than the one that it is in. Does
  /// not wait.
  bool told_to_regroup();
  bool of_a_pod() const { return !file_.empty(); }

 private:
  std::optional<Received> wait_for_socket();
  std::optional<Received> wait_for_file();
  /// The order in the file that is newer than the one that was taken, and that the job allows.
  std::optional<TrainOrder> newer_in_file();
  void refuse(const std::string& why);

  FileHandle socket_;
  std::filesystem::path file_;  // empty: by the socket
  std::optional<TrainOrder> own_part_;
  std::function<std::string(const TrainOrder&)> why_not_;
  RankOfPod me_;
  std::int64_t newest_ = -1;  // of the file, that was taken
  std::string refused_;       // why, said last
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace reckon
