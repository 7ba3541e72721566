#include "executor/train/records/orders.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "executor/train/checkpoint_support.h"
#include "executor/train/records/pod_orders.h"

using namespace reckon;

TEST_CASE("an order gives a process its part, and rank 0 the socket at which the others meet it") {
  OrderSockets sockets = make_order_sockets();
  const int watcher = sockets.watcher.get();
  Orders orders(sockets.process.release());
  CHECK_FALSE(orders.told_to_regroup());
  REQUIRE(send_regroup(watcher));
  CHECK(orders.told_to_regroup());
  CHECK_FALSE(orders.told_to_regroup());

  const Socket listener = listen_on({"127.0.0.1", 0});
  // One to regroup that came when it had left already is none.
  REQUIRE(send_regroup(watcher));
  REQUIRE(send_order(watcher, {.attempt = 3, .rank = 0, .workers = 5, .master = listener.local()},
                     listener.fd()));
  auto received = orders.wait();
  REQUIRE(received);
  CHECK(received->order.attempt == 3);
  CHECK(received->order.workers == 5);
  CHECK(received->order.master == listener.local());
  REQUIRE(received->listener);
  CHECK(received->listener->fd() != listener.fd());
  CHECK(received->listener->local() == listener.local());

  REQUIRE(send_order(watcher, {.attempt = 4, .rank = 2, .workers = 4, .master = {"::1", 80}}));
  received = orders.wait();
  REQUIRE(received);
  CHECK(received->order.rank == 2);
  CHECK(received->order.master == HostPort{"::1", 80});
  CHECK_FALSE(received->listener);

  sockets.watcher = {};
  CHECK_FALSE(orders.wait());  // nobody watches any more
  OrderSockets gone = make_order_sockets();
  gone.process = {};
  CHECK_FALSE(send_order(gone.watcher.get(), {}));
}

namespace {

std::string nothing_against(const TrainOrder&) { return ""; }

void write_order(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file.string() + ".new") << text;  // whole or not at all, as the kubelet does
  std::filesystem::rename(file.string() + ".new", file);
}

}  // namespace

TEST_CASE("a pod takes each order of its file once, a later one alone, and regroups for one") {
  const test::Scratch scratch;
  const auto file = scratch.path() / "start";
  write_order(file, order_text({.attempt = 2, .rank = 3, .workers = 4, .master = {"::1", 2222}}));
  Orders orders(file, std::nullopt, nothing_against);
  const auto first = orders.wait();
  REQUIRE(first);
  CHECK(first->order.attempt == 2);
  CHECK(first->order.rank == 3);
  CHECK(first->order.workers == 4);
  CHECK(first->order.master == HostPort{"::1", 2222});
  CHECK(!first->listener);
  CHECK(!orders.told_to_regroup());
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // between two looks
  write_order(file, order_text({.attempt = 3, .rank = 0, .workers = 3, .master = {"h", 1}}));
  CHECK(orders.told_to_regroup());
  const auto second = orders.wait();
  REQUIRE(second);
  CHECK(second->order.attempt == 3);
  CHECK(second->order.rank == 0);
  CHECK(second->order.workers == 3);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    write_order(file, order_text({.attempt = 4, .rank = 1, .workers = 3, .master = {"h", 1}}));
  });
  const auto third = orders.wait();  // not the 3 that is still there
  later.join();
  REQUIRE(third);
  CHECK(third->order.attempt == 4);
}

TEST_CASE("a number alone, an older launcher's order, is a start with the pod's own part") {
  const test::Scratch scratch;
  const auto file = scratch.path() / "start";
  write_order(file, "2");
  const TrainOrder own{.attempt = 0, .rank = 3, .workers = 4, .master = {"rank-0.job", 2222}};
  Orders orders(file, own, nothing_against);
  const auto received = orders.wait();
  REQUIRE(received);
  CHECK(received->order.attempt == 2);
  CHECK(received->order.rank == 3);
  CHECK(received->order.workers == 4);
  CHECK(received->order.master.host == "rank-0.job");
  // And an older reckon-worker reads of a whole order the start alone.
  CHECK(order_text({.attempt = 7, .rank = 1, .workers = 2, .master = {"h", 1}}).starts_with("7 "));
}

TEST_CASE("an order of a pod of several ranks gives each of them its part, and nobody else's") {
  const test::Scratch scratch;
  const auto file = scratch.path() / "start";
  write_order(file, order_text({.attempt = 1, .rank = 2, .workers = 3, .master = {"h", 2222}}));
  Orders orders(file, std::nullopt, nothing_against, {.ranks = 8, .number = 5});
  const auto received = orders.wait();
  REQUIRE(received);
  CHECK(received->order.rank == 21);
  CHECK(received->order.workers == 24);
  CHECK(received->order.master == HostPort{"h", 2222});
  const TrainOrder pod = order_of_pod(received->order, 8);
  CHECK((pod.rank == 2 && pod.workers == 3 && pod.attempt == 1));
}

TEST_CASE("an order that is torn, foreign or not of the job is refused, and waited on") {
  const std::string whole = "4 2 8 10.0.0.7:2222 end";
  CHECK(order_text({.attempt = 4, .rank = 2, .workers = 8, .master = {"10.0.0.7", 2222}}) == whole);
  const PodOrder read = parse_order(whole + '\n');
  REQUIRE(read.order);
  CHECK(read.order->rank == 2);
  CHECK(!read.own_part);
  CHECK(parse_order("").problem.empty());
  CHECK(!parse_order(" \n").order);
  CHECK(!read_order("/there/is/none").order);
  for (std::size_t length = 2; length < whole.size(); ++length)
    CHECK_THAT(parse_order(whole.substr(0, length)).problem.empty() ? "one" : "none",
               Catch::Equals(length == 2 ? "one" : "none"));  // "4 " is an older launcher's
  for (const char* text : {"later", "-1", "4 8 8 h:1 end", "4 -1 8 h:1 end", "4 0 0 h:1 end",
                           "4 0 8 h:0 end", "4 0 8 :1 end", "4 0 8 h end", "4 0 8 h:1 end end",
                           "4.5 0 8 h:1 end", "4 0 2000000 h:1 end"}) {
    INFO(text);
    CHECK(!parse_order(text).order);
    CHECK_THAT(parse_order(text).problem, Catch::Contains(text) &&
                                              Catch::Contains("START RANK RANKS HOST:PORT") &&
                                              Catch::Contains("reckon/start"));
  }

  const test::Scratch scratch;
  const auto file = scratch.path() / "start";
  std::vector<TrainOrder> asked;
  const auto not_of_nine = [&](const TrainOrder& order) {
    asked.push_back(order);
    return order.workers == 9 ? "there are no nine" : "";
  };
  write_order(file, "1");  // no part of its own: it stands by
  Orders orders(file, std::nullopt, not_of_nine);
  CHECK(!orders.told_to_regroup());
  CHECK(asked.empty());
  std::thread writer([&] {
    for (const char* text : {"4 0 9 h:1 end", "garbage", "5 1 2 h:1 end"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      write_order(file, text);
    }
  });
  const auto received = orders.wait();
  writer.join();
  REQUIRE(received);
  CHECK(received->order.attempt == 5);
  REQUIRE(!asked.empty());
  CHECK(asked.front().workers == 9);
}

TEST_CASE("a line of a pod that waits names the start that it has left") {
  CHECK(parse_waiting_line(waiting_line(7)) == 7);
  CHECK(parse_waiting_line(waiting_line(-1)) == -1);
  CHECK(!parse_waiting_line("reckon-worker: waits for an order; start left: x"));
  CHECK(!parse_waiting_line("step 7"));
}

TEST_CASE("a line of a pod that takes part says whose lines follow") {
  const std::string line = part_line({.attempt = 4, .rank = 2, .workers = 8});
  CHECK(line == "reckon-worker: takes part in start 4 as rank 2 of 8\n");
  for (const std::string& text : {line, line.substr(0, line.size() - 1)}) {
    const auto part = parse_part_line(text);
    REQUIRE(part);
    CHECK(part->attempt == 4);
    CHECK(part->rank == 2);
    CHECK(part->workers == 8);
  }
  for (const char* text : {"reckon-worker: takes part in start 4 as rank 8 of 8",
                           "reckon-worker: takes part in start x as rank 0 of 8",
                           "reckon-worker: takes part in start 4 as rank 2 of 8 or 9",
                           "reckon-worker: takes part in start 4", "step 7"})
    CHECK(!parse_part_line(text));
}
