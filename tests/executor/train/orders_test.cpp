#include "executor/train/records/orders.h"

#include <catch2/catch.hpp>

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
