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

TEST_CASE("a pod takes each start that its file names once, a later one alone, with its own part") {
  const test::Scratch scratch;
  const auto file = scratch.path() / "start";
  CHECK(!read_start(file));
  std::ofstream(file) << "";  // its annotation is not there yet
  CHECK(!read_start(file));
  std::ofstream(file) << "2";
  Orders orders(file, {.attempt = 0, .rank = 3, .workers = 4, .master = {"rank-0.job", 2222}});
  const auto first = orders.wait();
  REQUIRE(first);
  CHECK(first->order.attempt == 2);
  CHECK(first->order.rank == 3);
  CHECK(first->order.workers == 4);
  CHECK(first->order.master.host == "rank-0.job");
  CHECK(!first->listener);
  CHECK(!orders.told_to_regroup());
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    std::ofstream(file) << "3";
  });
  const auto second = orders.wait();  // not the 2 that is still there
  later.join();
  REQUIRE(second);
  CHECK(second->order.attempt == 3);
}

TEST_CASE("a line of a pod that waits names the start that it has left") {
  CHECK(parse_waiting_line(waiting_line(7)) == 7);
  CHECK(parse_waiting_line(waiting_line(-1)) == -1);
  CHECK(!parse_waiting_line("reckon-worker: waits for an order; start left: x"));
  CHECK(!parse_waiting_line("step 7"));
}
