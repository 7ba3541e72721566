#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "executor/kubernetes/kubectl.h"
#include "executor/launch/line_reader.h"

namespace reckon::kubernetes {

/// The log of one pod from its begin to its end, each line once, over lost connections and
/// restarted servers.
class PodLog {
 public:
  using OnLine = std::function<void(std::string_view line)>;
  PodLog(const Kubectl& kubectl, std::string pod, OnLine on_line);

  /// Reads what is there; connects where it is time to. `ended`: the pod is known to have ended.
  void poll(bool ended);
  /// Its connection is dead, perhaps without having noticed.
  void reconnect();
  /// A line that is printed now is heard, unless the connection died without a word.
  bool reads() const { return process_ != nullptr && output_open_; }
  /// Everything was read, or what is missing is gone with its pod.
  bool done() const { return done_; }
  /// When the line that was told last was printed; "": its time is not known.
  const std::string& last_time() const { return last_; }
  int descriptor() const { return process_ ? process_->output() : -1; }  // -1: nothing is open

 private:
  using Clock = std::chrono::steady_clock;
  void connect(bool ended);
  void on_line(std::string_view line);
  void on_end(const ProcessEnd& end);

  const Kubectl& kubectl_;
  std::string pod_;
  OnLine on_line_;
  std::unique_ptr<ChildProcess> process_;
  LineReader lines_;
  std::string last_;         // time of the last line that was taken
  std::string errors_;       // of the process
  bool behind_end_ = false;  // it was started when the pod had ended
  bool output_open_ = false;
  bool done_ = false;
  Backoff backoff_;
  Clock::time_point next_{};
};

/// The time before a line of `kubectl logs --timestamps`, in a form that sorts as text (nine digits
/// of a second); "": there is none. `rest` becomes what is behind it.
std::string sortable_time(std::string_view line, std::string_view& rest);

}  // namespace reckon::kubernetes
