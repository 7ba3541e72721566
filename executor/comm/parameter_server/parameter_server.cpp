#include "executor/comm/parameter_server/parameter_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/comm/parameter_server/server/process.h"
#include "executor/comm/rendezvous/loss_watch.h"

namespace reckon {

ServerReport ParameterServer::run() {
  const LossWatch watch(membership_, [this] {
    if (const auto loss = membership_.loss()) state_.fail(loss->what(), loss->peers());
    wake();
  });
  try {
    accept_until_done();
  } catch (const std::exception& error) {
    state_.fail(error.what(), {});
  }
  listener_.reset();
  // Threads that wait for a message read its end, see the failure and pass it on; those that send
  // to a lost rank, which takes nothing, end.
  const auto loss = membership_.loss();
  const auto is_lost = [&](std::uint32_t rank) {
    return loss && std::ranges::count(loss->peers(), int(rank)) > 0;
  };
  for (Connection& c : connections_)
    ::shutdown(c.channel.socket().fd(), is_lost(c.peer.rank) ? SHUT_RDWR : SHUT_RD);
  for (Connection& c : connections_) c.thread.join();
  if (const auto failure = state_.failure()) throw CommError(failure->what, failure->peers);
  return state_.report();
}

void ParameterServer::accept_until_done() {
  const Deadline all_here = Deadline::after(timeout_);
  while (!state_.all_left() && !state_.failure()) {
    const std::string missing = absent(), strangers = listener_->turned_away();
    if (!missing.empty() && all_here.passed())
      throw std::runtime_error(fmt::format("{} did not come within {:.3g} s{}{}", missing,
                                           timeout_.count(), strangers.empty() ? "" : "; ",
                                           strangers));
    std::vector<pollfd> waits{{wake_.fd(), POLLIN, 0}};
    listener_->add_to(waits);
    const int due = listener_->due_milliseconds(), all = all_here.left_milliseconds();
    poll(waits.data(), waits.size(), missing.empty() ? due : due < 0 ? all : std::min(due, all));
    std::uint64_t count = 0;
    (void)!read(wake_.fd(), &count, sizeof count);
    for (JobListener::Admitted& one : listener_->admit()) begin_to_serve(std::move(one));
  }
}

/// In a thread of its own; those of connections that are over end here.
void ParameterServer::begin_to_serve(JobListener::Admitted one) {
  for (Connection& c : connections_)
    if (c.over) c.thread.join();
  connections_.remove_if([](const Connection& c) { return !c.thread.joinable(); });
  Connection& c = connections_.emplace_back(std::move(one.channel), std::move(one.peer));
  c.thread = std::thread([this, &c] { serve(c); });
}

std::string ParameterServer::absent() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (std::size_t w = 0; w < present_.size(); ++w)
    if (!present_[w]) names.push_back(membership_.name_of(job_.rank_of_worker(int(w))));
  return fmt::format("{}", fmt::join(names, ", "));
}

void ParameterServer::serve(Connection& connection) {
  Channel& channel = connection.channel;
  int worker = -1;
  try {
    worker = greet(connection);
    reply(channel, ServerMessage::welcome, 0, {});  // lost from here on, it is missed
    wake();
    while (handle(channel, worker)) {
    }
    state_.left(worker);
  } catch (const std::exception& error) {
    if (worker >= 0)
      state_.fail(
          fmt::format("{}: {}", membership_.name_of(job_.rank_of_worker(worker)), error.what()),
          {job_.rank_of_worker(worker)});
  }
  if (const auto failure = state_.failure(); failure && worker >= 0) {
    try {
      reply(channel, ServerMessage::failed, 0, encode(*failure));
    } catch (const std::exception&) {
      // It is the one that is lost.
    }
  }
  ::shutdown(channel.socket().fd(), SHUT_WR);
  connection.over = true;
  wake();
}

/// Returns the worker's rank; throws where it is none of this job's.
int ParameterServer::greet(Connection& connection) {
  Channel& channel = connection.channel;
  constexpr Seconds kForTheHello{10};
  const Message message =
      receive_message(channel, kControlMessageLimit, Deadline::after(kForTheHello));
  if (ServerMessage(message.head.kind) != ServerMessage::hello) throw WireError("no hello");
  const Greeting hello = decode_greeting(message.payload);
  if (std::int64_t{hello.worker} * job_.ranks_of_worker != std::int64_t{connection.peer.rank})
    throw WireError("a rank that is another's");
  std::string refusal;
  const std::string& job_name = connection.peer.job;
  if (job_name != job_name_ || hello.attempt != membership_.attempt())
    refusal = fmt::format("this server belongs to job '{}', attempt {}; the worker to '{}', {}",
                          job_name_, membership_.attempt(), job_name, hello.attempt);
  else if (hello.worker < 0 || hello.worker >= job_.workers)
    refusal = fmt::format("worker {} of {}", hello.worker, job_.workers);
  else if (hello.digest != digest_)
    refusal =
        "worker and server differ in the model, the strategy or the optimizer: was one of "
        "them started with another plan?";
  if (refusal.empty()) {
    const std::lock_guard lock(mutex_);
    if (present_[std::size_t(hello.worker)])
      refusal = fmt::format("worker {} is there already", hello.worker);
    else
      present_[std::size_t(hello.worker)] = true;
  }
  if (!refusal.empty()) {
    reply(channel, ServerMessage::refused, 0, std::as_bytes(std::span(refusal)));
    throw WireError(refusal);
  }
  return hello.worker;
}

ServerReport run_parameter_server(Membership& membership, const std::string& job_name, int server,
                                  const ServerJob& job, Socket listener, Seconds timeout) {
  return ParameterServer(membership, job_name, server, job, std::move(listener), timeout).run();
}

}  // namespace reckon
