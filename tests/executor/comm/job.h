#pragma once
#include <memory>

#include "executor/comm/gloo/gloo_communicator.h"
#include "executor/comm/rendezvous/rendezvous.h"
#include "support/processes.h"
#include "support/skip.h"

namespace reckon {

/// A job of processes of this machine at a port that the system chose.
struct LocalJob {
  explicit LocalJob(int size_) : listener(listen_on({"127.0.0.1", 0})), size(size_) {
    options.master = listener.local();
    options.size = size_;
    options.deadline = Seconds{20};
  }
  /// In the process of `rank`.
  std::unique_ptr<Membership> join(int rank) {
    options.rank = rank;
    if (rank == 0) return Membership::join(options, std::move(listener));
    listener.close();
    return Membership::join(options);
  }
  Socket listener;
  int size;
  RendezvousOptions options{.secret = JobSecret::random()};
};

inline void need_gloo() {
#ifndef RECKON_WITH_GLOO
  skip_test("built without Gloo");
#endif
}

/// body(communicator) in `size` processes over Gloo; `before_connecting` in each once all are
/// there.
inline std::vector<ProcessOutcome> run_gloo_job(
    int size, const std::function<std::string(Communicator&, Membership&)>& body,
    GlooOptions gloo = {}, const std::function<void(const std::vector<pid_t>&)>& meanwhile = {},
    const std::function<void(int rank)>& before_connecting = {}) {
  LocalJob job(size);
  return run_processes(
      size,
      [&](int rank) {
        const auto membership = job.join(rank);
        if (before_connecting) before_connecting(rank);
        const auto communicator = make_gloo_communicator(*membership, gloo);
        return body(*communicator, *membership);
      },
      Seconds{60},
      [&](const std::vector<pid_t>& processes) {
        job.listener.close();
        if (meanwhile) meanwhile(processes);
      });
}

}  // namespace reckon
