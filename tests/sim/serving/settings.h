#pragma once
#include "sim/serving/service.h"

// Services for tests: a million requests to replicas that answer one at a time.
namespace reckon::test {

inline ServiceSetting one_replica(double rate, Seconds service) {
  ServiceSetting s;
  s.requests_per_second = {rate};
  s.batch_times = {service};
  s.queue_limit = 1'000'000;
  s.period = Seconds{1e6 / rate};
  s.warm_up = Seconds{1e4 / rate};
  return s;
}

inline ServiceSetting replicas(ServiceSetting s, int count, Routing routing) {
  s.replicas.initial = s.replicas.min = s.replicas.max = count;
  s.nodes_initial = s.nodes_min = s.nodes_max = count;
  s.routing = routing;
  return s;
}

}  // namespace reckon::test
