#pragma once
#include <functional>
#include <stdexcept>
#include <string>

#include "sim/base/quantity.h"

namespace reckon {

/// Reading ended because DataWatch::stop said so.
struct ReadingStopped : std::runtime_error {
  ReadingStopped() : std::runtime_error("reading the data was stopped on request") {}
};

/// What whoever has data opened is told, and asked, while they are opened and later while they are
/// read: from any thread, and often. Functions may be empty.
struct DataWatch {
  /// A file was found, a page of a list or a part of a shard was read.
  std::function<void()> got_on;
  /// To end with ReadingStopped; also looked at while a store does not answer.
  std::function<bool()> stop;
  /// A store does not answer, and is asked again.
  std::function<void(const std::string&)> warn;
  /// From the first answer that may pass to a StoreError.
  Seconds patience{120};

  bool stopped() const { return stop && stop(); }
  /// Throws ReadingStopped.
  void tell() const {
    if (stopped()) throw ReadingStopped();
    if (got_on) got_on();
  }
};

}  // namespace reckon
