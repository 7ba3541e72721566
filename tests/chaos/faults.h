#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chaos/job.h"
#include "chaos/strangers.h"
#include "sim/base/quantity.h"
#include "sim/base/random.h"

namespace reckon::test {

/// Begins when it is made, and is taken back when it is destroyed.
class Fault {
 public:
  virtual ~Fault() = default;
  virtual void tick() {}
};

/// Whom a fault may strike.
struct FaultTarget {
  Job& job;
  WireTap& tap;
};

struct FaultKind {
  const char* name;
  Harm harm;
  Seconds longest;         // it lasts from 0 to this
  std::string impossible;  // why it cannot be done here; "": it can
  std::function<std::unique_ptr<Fault>(FaultTarget&, RandomStream&)> begin;
};

/// All kinds, those that are impossible here too.
std::vector<FaultKind> fault_kinds();

}  // namespace reckon::test
