#include "executor/train/records/orders.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "executor/train/records/pod_orders.h"
#include "executor/train/stop_signal.h"
#include "sim/base/standard_streams.h"

namespace reckon {
namespace {

constexpr std::string_view kRegroup = "regroup";
constexpr std::string_view kTrain = "train";
constexpr std::chrono::milliseconds kBetweenLooksAtFile{100};

/// Room for one descriptor beside a message.
union Attachment {
  cmsghdr head;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

bool send_message(int socket, std::string text, int descriptor) {
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Attachment attachment{};
  if (descriptor >= 0) {
    message.msg_control = attachment.bytes.data();
    message.msg_controllen = attachment.bytes.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  }
  while (true) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

struct Message {
  std::string text;  // empty: nothing came, or the other end is closed
  Socket attached;
  bool closed = false;
};
Message receive_message(int socket) {
  std::array<char, 512> bytes{};
  iovec part{bytes.data(), bytes.size()};
  Attachment attachment{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = attachment.bytes.data();
  message.msg_controllen = attachment.bytes.size();
  const ssize_t length = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0) return {.text = "", .attached = {}, .closed = errno != EAGAIN && errno != EINTR};
  Message received{.text = {bytes.data(), std::size_t(length)}, .attached = {}, .closed = false};
  received.closed = length == 0;
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof(int));
    received.attached = Socket(descriptor);
  }
  return received;
}

std::optional<TrainOrder> order_in(const std::string& text) {
  std::istringstream words(text);
  std::string kind, master;
  TrainOrder order;
  words >> kind >> order.attempt >> order.rank >> order.workers >> master;
  const auto address = parse_host_port(master);
  if (!words || kind != kTrain || !address) return std::nullopt;
  order.master = *address;
  return order;
}

}  // namespace

OrderSockets make_order_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw FileError(fmt::format("cannot make a pair of sockets: {}", std::strerror(errno)));
  return {FileHandle(ends[0]), FileHandle(ends[1])};
}

bool send_order(int watcher, const TrainOrder& order, int listener) {
  return send_message(watcher,
                      fmt::format("{} {} {} {} {}", kTrain, order.attempt, order.rank,
                                  order.workers, text(order.master)),
                      listener);
}

bool send_regroup(int watcher) { return send_message(watcher, std::string(kRegroup), -1); }

std::optional<Orders::Received> Orders::wait() {
  return of_a_pod() ? wait_for_file() : wait_for_socket();
}

std::optional<Orders::Received> Orders::wait_for_file() {
  for (; !stop_requested(); std::this_thread::sleep_for(kBetweenLooksAtFile)) {
    const auto order = newer_in_file();
    if (!order) continue;
    newest_ = order->attempt;
    return Received{.order = *order, .listener = std::nullopt};
  }
  return std::nullopt;
}

std::optional<TrainOrder> Orders::newer_in_file() {
  PodOrder read = read_order(file_);
  if (!read.problem.empty()) refuse(read.problem);
  if (!read.order || read.order->attempt <= newest_) return std::nullopt;
  TrainOrder order = order_of_rank(*read.order, me_);
  if (read.own_part) {
    if (!own_part_) {
      refuse(
          fmt::format("'{}' is the order of a reckon that knows restart: {{kind: in_place}} "
                      "alone: run and attach with the reckon of this image",
                      order.attempt));
      return std::nullopt;
    }
    order = *own_part_;
    order.attempt = read.order->attempt;
  }
  if (const std::string why = why_not_(order); !why.empty()) {
    refuse(why);
    return std::nullopt;
  }
  return order;
}

/// Once for each reason: the file may be looked at for hours.
void Orders::refuse(const std::string& why) {
  if (std::exchange(refused_, why) == why) return;
  print_error(fmt::format("reckon-worker: error: order refused: {}\n", why));
}

std::optional<Orders::Received> Orders::wait_for_socket() {
  constexpr int kBetweenLooksMilliseconds = 50;  // at requests to stop
  while (!stop_requested()) {
    pollfd polled{socket_.get(), POLLIN, 0};
    if (::poll(&polled, 1, kBetweenLooksMilliseconds) <= 0) continue;
    Message message = receive_message(socket_.get());
    if (message.closed) return std::nullopt;
    const auto order = order_in(message.text);
    if (!order) continue;  // to regroup, which it has done
    Received received{.order = *order, .listener = std::nullopt};
    if (message.attached) received.listener = std::move(message.attached);
    return received;
  }
  return std::nullopt;
}

bool Orders::told_to_regroup() {
  if (of_a_pod()) {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < kBetweenLooksAtFile) return false;
    looked_ = now;
    return newer_in_file().has_value();
  }
  pollfd polled{socket_.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0 && receive_message(socket_.get()).text == kRegroup;
}

}  // namespace reckon
