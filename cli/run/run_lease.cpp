#include "cli/run/run_lease.h"

#include <fmt/format.h>

#include <utility>

#include "cli/exit_code.h"
#include "cli/output.h"
#include "executor/train/stop_signal.h"

namespace reckon::cli {

using kubernetes::LauncherLease;

std::optional<int> RunLease::take() {
  watch_stop_signals();
  const auto state = lease_.wait([this] { return tell_whom_it_waits_for(); });
  switch (state) {
    case LauncherLease::State::held:
      if (stood_by_)
        print_error(
            fmt::format("reckon: {} is taken over: this launcher acts on it from here on\n", run_));
      return std::nullopt;
    case LauncherLease::State::forbidden:
      print_error(fmt::format(
          "reckon: warning: no Lease may be made in this namespace ({}): nothing keeps a second "
          "launcher of {} from acting beside this one\n",
          lease_.trouble(), run_));
      return std::nullopt;
    case LauncherLease::State::waiting:
      break;
  }
  if (stop_requests() > 0) {
    print_error(fmt::format("reckon: {} goes on; nothing of it is changed\n", run_));
    return kExitStoppedOnRequest;
  }
  print_error(
      fmt::format("reckon: the {} is starting a run '{}' already\n", lease_.holder_text(), run_));
  return kEnvironmentFailed;
}

bool RunLease::tell_whom_it_waits_for() {
  if (stop_requests() > 0) return false;
  if (made_now_ && lease_.holder_lives()) return false;
  std::string text;
  if (!lease_.trouble().empty()) {
    text = fmt::format("the launcher's lease is not known yet: {}", lease_.trouble());
  } else if (const std::string holder = lease_.holder(); !holder.empty()) {
    stood_by_ = true;
    text = fmt::format(
        "{} is held by the {}; this one stands by, and takes over when that lease runs out or is "
        "given back",
        run_, kubernetes::launcher_text(holder));
  }
  if (!text.empty() && std::exchange(told_, text) != text)
    print_error(fmt::format("reckon: {}\n", text));
  return true;
}

StopRequest RunLease::request(const std::function<void(const std::string&)>& say) {
  if (const std::string news = lease_.news(); !news.empty()) say(news);
  const StopRequest asked = requested_by_signals();
  return asked == StopRequest::none && lease_.stop_asked() ? StopRequest::graceful : asked;
}

std::string lost_text(const std::string& run, const kubernetes::LeaseLost& lost) {
  return fmt::format(
      "{} was taken over{} while this launcher could not renew its lease; it acts no more, and "
      "stands by",
      run,
      lost.holder().empty() ? ""
                            : fmt::format(" by the {}", kubernetes::launcher_text(lost.holder())));
}

}  // namespace reckon::cli
