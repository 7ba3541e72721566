#pragma once
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/parameter_server/parameter_server.h"
#include "executor/comm/parameter_server/server/protocol.h"
#include "executor/comm/rendezvous/job_listener.h"

// The class behind run_parameter_server().
namespace reckon {

class ParameterServer {
 public:
  ParameterServer(Membership& membership, std::string job_name, int index, const ServerJob& job,
                  Socket listener, Seconds timeout)
      : membership_(membership),
        job_name_(std::move(job_name)),
        job_(job),
        digest_(job.digest()),
        state_(job, index),
        listener_(std::in_place, std::move(listener), membership.options().secret,
                  Listening{Listening::As::parameter_server, std::uint32_t(membership.rank())},
                  membership.options().warn, JobListenerLimits::for_processes(job.workers)),
        timeout_(timeout),
        wake_(wake_descriptor()),
        present_(std::size_t(job.workers)) {}
  ServerReport run();

 private:
  struct Connection {
    Connection(Channel its_channel, Connecting its_peer)  // clang before 16 needs to be told
        : channel(std::move(its_channel)), peer(std::move(its_peer)) {}
    Channel channel;
    Connecting peer;
    std::atomic<bool> over = false;
    std::thread thread;
  };

  // parameter_server.cpp: connections, of which each has a thread
  void accept_until_done();
  void begin_to_serve(JobListener::Admitted one);
  std::string absent() const;
  void serve(Connection& connection);
  int greet(Connection& connection);

  // messages.cpp: what is answered to whom
  bool handle(Channel& channel, int worker);
  void receive_values(Channel& channel, const MessageHead& head, bool state);
  void receive_push(Channel& channel, int worker, const MessageHead& head);
  void receive_rows(Channel& channel, int worker, const MessageHead& head);
  void answer_rows(Channel& channel, int worker, const MessageHead& head);
  [[noreturn]] void give_up_on(std::int64_t step);
  void answer_pull(Channel& channel, int worker, const MessageHead& head);
  void send_values(Channel& channel, int worker, std::int64_t step, bool tables);
  void send_state(Channel& channel, std::size_t group);
  void reply(Channel& channel, ServerMessage kind, std::uint64_t tag,
             std::span<const std::byte> payload) {
    send_message(channel, std::uint16_t(kind), std::uint32_t(membership_.rank()), tag, payload,
                 Deadline::after(timeout_));
  }
  void wake() const {
    const std::uint64_t one = 1;
    (void)!write(wake_.fd(), &one, sizeof one);
  }

  Membership& membership_;
  const std::string job_name_;
  const ServerJob& job_;
  const std::uint64_t digest_;
  ServerState state_;
  std::optional<JobListener> listener_;
  const Seconds timeout_;
  Socket wake_;
  std::list<Connection> connections_;
  mutable std::mutex mutex_;  // of present_
  std::vector<bool> present_;
};

}  // namespace reckon
