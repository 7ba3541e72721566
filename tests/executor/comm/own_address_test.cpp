#include "executor/comm/rendezvous/own_address.h"

#include <catch2/catch.hpp>

namespace {
using namespace reckon;

/// As the names are known on a machine that is called nodeb.
std::vector<std::string> on_nodeb(const std::string& host) {
  if (host == "nodea") return {"fd77::1", "10.77.0.1"};
  if (host == "nodeb") return {"127.0.1.1"};
  if (host == "nodeb.lan") return {"10.77.0.2", "fd77::2"};
  if (host == "unknown") return {};
  return {host};
}

std::string own(const std::string& address, const std::string& master) {
  const auto found = own_address({.master = {master, 29500}, .address = address}, on_nodeb);
  return found ? *found : "refused: " + found.error().front().what;
}
}  // namespace

TEST_CASE("an --address is resolved once, to the family by which the master is reached") {
  CHECK(own("nodeb.lan", "nodea") == "fd77::2");
  CHECK(own("nodeb.lan", "10.77.0.1") == "10.77.0.2");
  CHECK(own("10.77.0.2", "nodea") == "10.77.0.2");
  CHECK(own("unknown", "nodea") == "unknown");
  CHECK(own("", "nodea").empty());
}

TEST_CASE("an --address that leads back to this machine is refused where rank 0 is elsewhere") {
  CHECK(own("nodeb", "nodea") ==
        "refused: --address nodeb is 127.0.1.1 here, which other machines do not reach");
  CHECK(own("127.0.0.1", "10.77.0.1") ==
        "refused: --address 127.0.0.1 is a loopback, which other machines do not reach");
  // All on this machine; rank 0, whose machine has that name.
  CHECK(own("127.0.0.2", "127.0.0.1") == "127.0.0.2");
  CHECK(own("nodeb", "nodeb").empty());
}
