#include "executor/comm/parameter_server/server/link.h"

#include <algorithm>

#include <fmt/format.h>

#include "executor/comm/channel.h"
#include "sim/base/check.h"

namespace reckon {

namespace {
using Clock = Deadline::Clock;
constexpr Seconds kForTheVerdict{5};  // the server's own deadline passes first, and it says why
}  // namespace

ServerLink::ServerLink(Membership& membership, const std::string& job_name, const ServerJob& job,
                       int server, Seconds timeout)
    : membership_(membership), job_(job), server_(server), timeout_(timeout) {
  const auto member = std::size_t(job.rank_of_server(server));
  RECKON_CHECK(membership.rank() % job.ranks_of_worker == 0);
  RECKON_CHECK(member < membership.members().size());
  try {
    server_channel_ =
        connect_to_process(membership.members()[member].address, membership.options().secret,
                           {Listening::As::parameter_server, std::uint32_t(member)},
                           {job_name, std::uint32_t(membership.rank())}, Deadline::after(timeout));
    send(ServerMessage::hello, 0,
         encode(Greeting{.attempt = membership.attempt(),
                         .worker = membership.rank() / job.ranks_of_worker,
                         .digest = job.digest()}));
    expect(ServerMessage::welcome);
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    rethrow(error);
  }
  thread_ = std::jthread([this] { serve(); });
  watch_.emplace(membership, [this] {
    left_ = true;
    server_channel_->socket().shutdown();
  });
}

ServerLink::~ServerLink() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    // In the middle of something: do not wait for it.
    if (!queue_.empty()) server_channel_->socket().shutdown();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  try {
    if (!failed_) send(ServerMessage::leave, 0, {});
  } catch (const std::exception&) {
    // The server is gone; so are we.
  }
}

void ServerLink::enqueue(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  changed_.notify_all();
}

void ServerLink::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || (!queue_.empty() && !failed_); });
    if (stop_) return;
    lock.unlock();
    std::exception_ptr failed;
    try {
      try {
        queue_.front()();  // deque: pushing to its end does not move its front
      } catch (const CommError&) {
        throw;
      } catch (const std::exception& error) {
        rethrow(error);
      }
    } catch (const CommError&) {
      failed = std::current_exception();
    }
    lock.lock();
    failed_ = failed;
    queue_.pop_front();
    changed_.notify_all();
  }
}

ServerLink::Times ServerLink::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || queue_.empty(); });
  if (failed_) std::rethrow_exception(failed_);
  return std::exchange(times_, {});
}

void ServerLink::rethrow(const std::exception& error) {
  const int rank = job_.rank_of_server(server_);
  // A server that ends says why before it closes; what it said may still be unread.
  try {
    if (!server_channel_) throw WireError("never connected");
    const Message last =
        receive_message(*server_channel_, kControlMessageLimit, Deadline::after(100ms));
    if (ServerMessage(last.head.kind) == ServerMessage::failed) {
      const ServerFailure failure = decode_failure(last.payload);
      throw CommError(failure.what, failure.peers);
    }
  } catch (const CommError&) {
    throw;
  } catch (const std::exception&) {
    // No: then it is lost itself, or another rank is.
  }
  if (const auto loss = left_ ? membership_.loss() : std::nullopt) throw CommError(*loss);
  throw CommError(fmt::format("{}: {}", membership_.name_of(rank), error.what()), {rank});
}

void ServerLink::send(ServerMessage kind, std::uint64_t tag, std::span<const std::byte> payload) {
  send_message(*server_channel_, std::uint16_t(kind), std::uint32_t(membership_.rank()), tag,
               payload, Deadline::after(timeout_));
}

MessageHead ServerLink::expect(ServerMessage kind) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 40;
  const MessageHead head =
      receive_head(*server_channel_, kLimit, Deadline::after(timeout_ + kForTheVerdict));
  if (ServerMessage(head.kind) == kind) return head;
  if (head.length > kControlMessageLimit) throw WireError("an answer that was not asked for");
  std::vector<std::byte> payload(head.length);
  receive_payload(*server_channel_, head, payload, Deadline::after(timeout_));
  const int rank = job_.rank_of_server(server_);
  if (ServerMessage(head.kind) == ServerMessage::failed) {
    const ServerFailure failure = decode_failure(payload);
    throw CommError(failure.what, failure.peers);
  }
  if (ServerMessage(head.kind) == ServerMessage::refused)
    throw CommError(fmt::format("{} refuses this worker: {}", membership_.name_of(rank),
                                std::string_view(reinterpret_cast<const char*>(payload.data()),
                                                 payload.size())),
                    {rank});
  throw WireError(fmt::format("a message of kind {} instead of {}", head.kind, int(kind)));
}

void ServerLink::initialize(std::size_t group, std::span<const float> values) {
  enqueue([=, this] { send(ServerMessage::initialize, group, std::as_bytes(values)); });
}

void ServerLink::push(std::int64_t step, std::size_t group, std::span<const float> gradients) {
  enqueue([=, this] {
    const auto begin = Clock::now();
    send(ServerMessage::push, encode(PushTag{step, group}), std::as_bytes(gradients));
    times_.push += Clock::now() - begin;
    times_.sent += Bytes{double(gradients.size_bytes())};
  });
}

void ServerLink::send_rows(ServerMessage kind, PushTag tag, std::span<const std::byte> payload) {
  send(kind, encode(tag), payload);
  times_.sent += Bytes{double(payload.size())};
}

void ServerLink::push_rows(std::int64_t step, std::size_t group, std::span<const std::byte> rows) {
  enqueue([=, this] {
    const auto begin = Clock::now();
    send_rows(ServerMessage::push_rows, {step, group}, rows);
    times_.push += Clock::now() - begin;
  });
}

void ServerLink::pull_rows(std::int64_t step, std::size_t group, std::span<const RowId> ids,
                           std::span<float> values) {
  enqueue([=, this] {
    send_rows(ServerMessage::pull_rows, {step, group}, std::as_bytes(ids));
    const MessageHead head = expect(ServerMessage::rows);
    if (head.length != values.size_bytes())
      throw WireError(fmt::format("rows of {} bytes", head.length));
    receive_payload(*server_channel_, head, std::as_writable_bytes(values),
                    Deadline::after(timeout_));
  });
}

void ServerLink::flush() {
  enqueue([this] {
    send(ServerMessage::flush, 0, {});
    expect(ServerMessage::pushed);
  });
}

void ServerLink::pull(std::int64_t step_finished, const StepEnd& end, std::span<float> values) {
  enqueue([=, this] { do_pull(step_finished + 1, encode(end), values); });
}
void ServerLink::pull_first(std::span<float> values) {
  enqueue([=, this] { do_pull(0, {}, values); });
}

void ServerLink::pull_all(std::int64_t step, std::span<float> values,
                          std::span<std::vector<float>> tables) {
  enqueue([=, this] {
    send(ServerMessage::pull_all, std::uint64_t(step), {});
    expect(ServerMessage::pushed);
    receive_groups(job_.keys.groups.size(), values, tables);
    receive_report();
  });
}

void ServerLink::receive_groups(std::size_t groups, std::span<float> values,
                                std::span<std::vector<float>> tables) {
  for (std::size_t i = 0; i < groups; ++i) {
    const MessageHead head = expect(ServerMessage::values);
    if (head.tag >= job_.keys.groups.size()) throw WireError(fmt::format("group {}", head.tag));
    const std::size_t count = job_.keys.count_on(head.tag, server_);
    if (head.length != count * sizeof(float))
      throw WireError(fmt::format("values of {} bytes", head.length));
    const auto receive = [&](std::span<float> to) {
      receive_payload(*server_channel_, head, std::as_writable_bytes(to),
                      Deadline::after(timeout_));
    };
    if (!job_.keys.is_table(head.tag)) {
      receive(values.subspan(job_.keys.part(head.tag, server_).first, count));
      continue;
    }
    if (head.tag >= tables.size()) throw WireError(fmt::format("table {} unasked for", head.tag));
    std::vector<float> rows(count);
    receive(rows);
    job_.keys.scatter(head.tag, server_, rows, tables[head.tag]);
  }
}

PullReport ServerLink::receive_report() {
  const MessageHead head = expect(ServerMessage::pulled);
  if (head.length > kControlMessageLimit) throw WireError("a report of that length");
  std::vector<std::byte> payload(head.length);
  receive_payload(*server_channel_, head, payload, Deadline::after(timeout_));
  return decode_pull_report(payload);
}

void ServerLink::do_pull(std::int64_t step, std::span<const std::byte> end,
                         std::span<float> values) {
  const auto begin = Clock::now();
  send(ServerMessage::pull, std::uint64_t(step), end);
  expect(ServerMessage::pushed);  // what the kernel still held of the pushes is there, too
  const auto pushed = Clock::now();
  std::size_t groups = job_.keys.groups.size();
  for (std::size_t g = 0; g < job_.keys.groups.size(); ++g) groups -= job_.keys.is_table(g) ? 1 : 0;
  receive_groups(groups, values, {});
  const PullReport report = receive_report();
  times_.end = Clock::now();
  times_.push += pushed - begin;
  const Seconds rest = times_.end - pushed, waited = std::clamp(report.waited, Seconds{}, rest);
  times_.apply = std::clamp(report.apply, Seconds{}, waited);
  times_.wait = waited - times_.apply;
  times_.pull = rest - waited;
  times_.next_step = report.next_step;
  times_.stop_step = report.stop_step;
  times_.delay = report.delay;
}

void ServerLink::get_state(std::size_t group, std::span<float> state) {
  enqueue([=, this] {
    send(ServerMessage::get_state, group, {});
    const MessageHead head = expect(ServerMessage::state);
    if (head.length != state.size_bytes()) throw WireError("optimizer state of another size");
    receive_payload(*server_channel_, head, std::as_writable_bytes(state),
                    Deadline::after(timeout_));
  });
}
void ServerLink::put_state(std::size_t group, std::span<const float> state) {
  enqueue([=, this] {
    send(ServerMessage::put_state, group, std::as_bytes(state));
    expect(ServerMessage::stored);
  });
}
void ServerLink::begin_at(std::int64_t step) {
  enqueue([=, this] {
    send(ServerMessage::begin, std::uint64_t(step), {});
    expect(ServerMessage::stored);
  });
}
void ServerLink::end_steps() {
  enqueue([this] {
    send(ServerMessage::end, 0, {});
    expect(ServerMessage::stored);
  });
}
void ServerLink::get_progress(std::vector<RankProgress>& progress) {
  enqueue([&progress, this] {
    send(ServerMessage::progress, 0, {});
    const MessageHead head = expect(ServerMessage::progress);
    if (head.length > kControlMessageLimit) throw WireError("progress of that length");
    std::vector<std::byte> payload(head.length);
    receive_payload(*server_channel_, head, payload, Deadline::after(timeout_));
    progress = decode_progress(payload);
    if (progress.size() != std::size_t(job_.workers)) throw WireError("progress of other workers");
  });
}

}  // namespace reckon
