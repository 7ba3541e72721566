#include "executor/comm/parameter_server/parameter_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <span>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/comm/parameter_server/server/protocol.h"
#include "executor/comm/rendezvous/job_listener.h"
#include "sim/base/check.h"

namespace reckon {

namespace {
using Clock = std::chrono::steady_clock;

class Server {
 public:
  Server(const Membership& membership, std::string job_name, int index, const ServerJob& job,
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
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
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

  void accept_until_done();
  void begin_to_serve(JobListener::Admitted one);
  std::string absent() const;
  void serve(Connection& connection);
  int greet(Connection& connection);
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

  const Membership& membership_;
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

ServerReport Server::run() {
  try {
    accept_until_done();
  } catch (const std::exception& error) {
    state_.fail(error.what(), {});
  }
  listener_.reset();
  // Threads that wait for a message read its end, see the failure and pass it on.
  for (Connection& c : connections_) ::shutdown(c.channel.socket().fd(), SHUT_RD);
  for (Connection& c : connections_) c.thread.join();
  if (const auto failure = state_.failure()) throw CommError(failure->what, failure->peers);
  return state_.report();
}

void Server::accept_until_done() {
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
void Server::begin_to_serve(JobListener::Admitted one) {
  for (Connection& c : connections_)
    if (c.over) c.thread.join();
  connections_.remove_if([](const Connection& c) { return !c.thread.joinable(); });
  Connection& c = connections_.emplace_back(std::move(one.channel), std::move(one.peer));
  c.thread = std::thread([this, &c] { serve(c); });
}

std::string Server::absent() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (std::size_t w = 0; w < present_.size(); ++w)
    if (!present_[w]) names.push_back(membership_.name_of(job_.rank_of_worker(int(w))));
  return fmt::format("{}", fmt::join(names, ", "));
}

void Server::serve(Connection& connection) {
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
int Server::greet(Connection& connection) {
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

/// One message; false: the worker leaves.
bool Server::handle(Channel& channel, int worker) {
  constexpr Seconds kAnyTime{1e8};  // computing a step may take long; keep-alive finds dead hosts
  const Deadline deadline = Deadline::after(kAnyTime);
  const MessageHead head = receive_head(channel, std::uint64_t{1} << 40, deadline);
  switch (ServerMessage(head.kind)) {
    case ServerMessage::push:
      receive_push(channel, worker, head);
      return true;
    case ServerMessage::pull:
      answer_pull(channel, worker, head);
      return true;
    case ServerMessage::push_rows:
      receive_rows(channel, worker, head);
      return true;
    case ServerMessage::pull_rows:
      answer_rows(channel, worker, head);
      return true;
    case ServerMessage::pull_all:
      reply(channel, ServerMessage::pushed, head.tag, {});
      send_values(channel, worker, std::int64_t(head.tag), true);
      return true;
    case ServerMessage::initialize:
      receive_values(channel, head, false);
      return true;
    case ServerMessage::put_state:
      receive_values(channel, head, true);
      reply(channel, ServerMessage::stored, head.tag, {});
      return true;
    case ServerMessage::get_state:
      send_state(channel, head.tag);
      return true;
    case ServerMessage::flush:
      reply(channel, ServerMessage::pushed, head.tag, {});
      return true;
    case ServerMessage::begin:
      state_.begin(worker, std::int64_t(head.tag));
      reply(channel, ServerMessage::stored, head.tag, {});
      return true;
    case ServerMessage::end:
      state_.ended(worker);
      reply(channel, ServerMessage::stored, head.tag, {});
      return true;
    case ServerMessage::progress:
      reply(channel, ServerMessage::progress, 0, encode(state_.progress()));
      return true;
    case ServerMessage::leave:
      return false;
    default:
      throw WireError(fmt::format("message of kind {}", head.kind));
  }
}

void Server::receive_values(Channel& channel, const MessageHead& head, bool state) {
  if (head.tag >= state_.groups()) throw WireError(fmt::format("group {}", head.tag));
  const std::size_t buffers = state ? state_.optimizer_state(head.tag).size() : 0;
  const std::size_t count = state ? buffers : state_.group_size(head.tag);
  if (head.length != count * sizeof(float))
    throw WireError(fmt::format("{} bytes for a group of {} numbers", head.length, count));
  std::vector<float> values(count);
  receive_payload(channel, head, std::as_writable_bytes(std::span(values)),
                  Deadline::after(timeout_));
  if (state)
    RECKON_CHECK(state_.set_optimizer_state(head.tag, values));
  else
    state_.initialize(head.tag, values);
}

void Server::receive_push(Channel& channel, int worker, const MessageHead& head) {
  const PushTag tag = decode_push_tag(head.tag);
  if (tag.group >= state_.groups()) throw WireError(fmt::format("group {}", tag.group));
  if (state_.is_table(tag.group)) throw WireError(fmt::format("group {} without rows", tag.group));
  const std::span<float> buffer = state_.push_buffer(worker, tag.group);
  if (head.length != buffer.size_bytes())
    throw WireError(fmt::format("{} bytes for a group of {}", head.length, buffer.size_bytes()));
  receive_payload(channel, head, std::as_writable_bytes(buffer), Deadline::after(timeout_));
  state_.count(Bytes{double(head.length)}, Bytes{});
  if (!state_.pushed(worker, tag.step, tag.group))
    throw WireError(fmt::format("gradients of step {} out of turn", tag.step));
}

/// So many rows of a message, each of `each` bytes.
std::size_t rows_of(const MessageHead& head, std::size_t each) {
  if (head.length % each != 0)
    throw WireError(fmt::format("{} bytes for rows of {}", head.length, each));
  return head.length / each;
}

void Server::receive_rows(Channel& channel, int worker, const MessageHead& head) {
  const PushTag tag = decode_push_tag(head.tag);
  if (tag.group >= state_.groups() || !state_.is_table(tag.group))
    throw WireError(fmt::format("rows of group {}", tag.group));
  const std::size_t width = state_.width(tag.group);
  const std::size_t each = sizeof(RowId) + width * sizeof(float), rows = rows_of(head, each);
  if (rows * width > state_.group_size(tag.group))
    throw WireError(fmt::format("{} rows for group {}", rows, tag.group));
  std::vector<std::byte> payload(head.length);
  receive_payload(channel, head, payload, Deadline::after(timeout_));
  std::vector<RowId> ids(rows);
  std::vector<float> gradients(rows * width);
  const std::span<const std::byte> read = payload;  // of no rows: both copies are of nothing
  std::ranges::copy(read.first(rows * sizeof(RowId)),
                    std::as_writable_bytes(std::span(ids)).begin());
  std::ranges::copy(read.subspan(rows * sizeof(RowId)),
                    std::as_writable_bytes(std::span(gradients)).begin());
  state_.count(Bytes{double(head.length)}, Bytes{});
  if (!state_.push_rows(worker, tag.group, std::move(ids), std::move(gradients)))
    throw WireError(fmt::format("rows of group {} that are not this server's", tag.group));
  if (!state_.pushed(worker, tag.step, tag.group))
    throw WireError(fmt::format("gradients of step {} out of turn", tag.step));
}

void Server::answer_rows(Channel& channel, int worker, const MessageHead& head) {
  const PushTag tag = decode_push_tag(head.tag);
  if (tag.group >= state_.groups() || !state_.is_table(tag.group))
    throw WireError(fmt::format("rows of group {}", tag.group));
  const std::size_t rows = rows_of(head, sizeof(RowId));
  if (rows * state_.width(tag.group) > state_.group_size(tag.group))
    throw WireError(fmt::format("{} rows of group {}", rows, tag.group));
  std::vector<RowId> ids(rows);
  receive_payload(channel, head, std::as_writable_bytes(std::span(ids)), Deadline::after(timeout_));
  const auto values = state_.wait_rows(worker, tag.step, tag.group, ids, Deadline::after(timeout_));
  if (!values) give_up_on(tag.step);
  reply(channel, ServerMessage::rows, tag.group, std::as_bytes(std::span(*values)));
  state_.count(Bytes{double(head.length)}, Bytes{double(values->size() * sizeof(float))});
}

/// The values of `step` did not come in time, or the job has failed.
void Server::give_up_on(std::int64_t step) {
  std::vector<int> missing = state_.behind(step - 1);
  std::vector<std::string> names;
  for (int& worker : missing) {
    worker = job_.rank_of_worker(worker);
    names.push_back(membership_.name_of(worker));
  }
  state_.fail(fmt::format("no gradients of step {} for {:.3g} s from {}", step - 1,
                          timeout_.count(), fmt::join(names, ", ")),
              missing);  // no effect where the wait ended by another failure
  throw std::runtime_error("the server ends");
}

void Server::answer_pull(Channel& channel, int worker, const MessageHead& head) {
  if (head.length > kControlMessageLimit) throw WireError("a pull with a payload");
  std::vector<std::byte> payload(head.length);
  receive_payload(channel, head, payload, Deadline::after(timeout_));
  reply(channel, ServerMessage::pushed, head.tag, {});
  const auto step = std::int64_t(head.tag);  // to begin; 0 without a payload: the first values
  if (!payload.empty()) {
    const StepEnd end = decode_step_end(payload);
    if (end.stop) state_.request_stop();
    if (!state_.finished(worker, step - 1, end.learning_rate))
      throw WireError(
          fmt::format("another learning rate in step {} than other workers'", step - 1));
  }
  send_values(channel, worker, step, false);
}

/// All groups but tables; with `tables` these too, whole.
void Server::send_values(Channel& channel, int worker, std::int64_t step, bool tables) {
  std::vector<bool> sent(state_.groups());
  for (std::size_t g = 0; g < sent.size(); ++g) sent[g] = state_.is_table(g) && !tables;
  std::vector<float> values;
  PullReport report;
  for (std::ptrdiff_t left = std::ranges::count(sent, false); left > 0; --left) {
    const auto begin = Clock::now();
    const auto ready = state_.wait_values(worker, step, sent, values, Deadline::after(timeout_));
    report.waited += Clock::now() - begin;
    if (!ready) give_up_on(step);
    reply(channel, ServerMessage::values, ready->group, std::as_bytes(std::span(values)));
    state_.count(Bytes{}, Bytes{double(values.size() * sizeof(float))});
  }
  report.apply = state_.apply_time(step - 1);
  report.next_step = step > 0 ? state_.next_step(step - 1) : 0;
  report.stop_step = state_.stop_step();
  report.delay = state_.delay_of(worker);
  reply(channel, ServerMessage::pulled, 0, encode(report));
}

void Server::send_state(Channel& channel, std::size_t group) {
  if (group >= state_.groups()) throw WireError(fmt::format("group {}", group));
  const std::vector<float> values = state_.optimizer_state(group);
  reply(channel, ServerMessage::state, group, std::as_bytes(std::span(values)));
}
}  // namespace

ServerReport run_parameter_server(const Membership& membership, const std::string& job_name,
                                  int server, const ServerJob& job, Socket listener,
                                  Seconds timeout) {
  return Server(membership, job_name, server, job, std::move(listener), timeout).run();
}

}  // namespace reckon
