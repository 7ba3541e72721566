#pragma once
#include <string>
#include <utility>

#include "sim/cluster/life/life.h"

// The Timeline of the one replication that was asked to be recorded; costs nothing otherwise.
namespace reckon {

class Recorder {
 public:
  explicit Recorder(bool on) : on_(on) {}
  bool on() const { return on_; }
  /// Spans of no length are left out.
  void span(const char* name, std::string_view category, int pool, int node, SimTime begin,
            SimTime end) {
    if (on_ && begin < end)
      timeline_.spans.push_back({name, std::string(category), pool, node, begin, end});
  }
  void mark(const char* name, int pool, int node, SimTime at) {
    if (on_) timeline_.marks.push_back({name, pool, node, at});
  }
  Timeline take() { return std::move(timeline_); }

 private:
  bool on_;
  Timeline timeline_;
};

}  // namespace reckon
