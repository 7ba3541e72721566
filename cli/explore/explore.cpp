#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include "cli/command.h"
#include "cli/explore/explore_answers.h"
#include "cli/explore/explore_options.h"
#include "cli/explore/explore_server.h"
#include "cli/load/load.h"
#include "cli/output.h"
#include "cli/parse.h"

namespace reckon::cli {
namespace {

/// Ctrl-C and SIGTERM, of this thread and of those that it starts.
class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGINT);
    ::sigaddset(&signals_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void wait() const {
    int which = 0;
    ::sigwait(&signals_, &which);
  }

 private:
  sigset_t signals_{};
};

}  // namespace

std::vector<OptionText> explore_options() { return shown_options<ExploreOptions>(); }

int run_explore(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<ExploreOptions>(self, arguments);
  if (!options) return kDone;
  const auto catalog = checked(load_catalogs(*options));
  const auto network = make_network(*options);
  const ExploreAnswers answers(*options, catalog, *network);
  const bool json = options->format == OutputFormat::json;
  // Also refuses a file that cannot be explored, and reads the evidence before somebody waits.
  const std::string choices = json ? answers.controls({}) : answers.controls_as_table();
  if (options->print) {
    print(choices);
    return kDone;
  }
  const StopSignals stop;
  const ExploreServer server(answers, std::uint16_t(options->port), options->quick);
  print(fmt::format("{}\nOpen it in a browser on this machine; Ctrl-C ends it.\n", server.link()));
  stop.wait();
  return kDone;
}

}  // namespace reckon::cli
