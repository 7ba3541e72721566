#include <fmt/format.h>
#include <sys/resource.h>

#include <exception>
#include <span>
#include <stdexcept>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/worker/compute.h"
#include "cli/worker/job.h"
#include "cli/worker/serve.h"
#include "executor/comm/errors.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/data/source.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainer.h"

namespace {

/// Rank 0 holds a connection to each process of its job; shells give 1,024 descriptors, and allow
/// more to who asks.
void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace reckon;
  using cli::print_error;
  raise_descriptor_limit();
  watch_stop_signals();
  const auto say = [](const std::exception& e) {
    print_error(fmt::format("reckon-worker: error: {}\n", e.what()));
  };
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    // Words that are no plan: a file of that name is given as ./serve.
    if (!arguments.empty() && arguments.front() == "serve")
      return worker::run_serve(std::span(arguments).subspan(1));
    if (!arguments.empty() && arguments.front() == "export")
      return worker::run_export(std::span(arguments).subspan(1));
    const worker::Options options = worker::parse_options(arguments);
    if (options.help || options.version || options.libraries) {
      cli::print(options.help      ? worker::help_text()
                 : options.version ? "reckon-worker " RECKON_VERSION "\n"
                                   : worker::device_libraries());
      return cli::kDone;
    }
    return worker::run_job(options);
  } catch (const std::invalid_argument& e) {
    print_error(fmt::format("reckon-worker: {}\nTry 'reckon-worker --help'.\n", e.what()));
    return cli::kInputIsWrong;
  } catch (const TrainingError& e) {
    say(e);
    return cli::kAnswerIsNo;
  } catch (const DataError& e) {
    say(e);
    return cli::kInputIsWrong;
  } catch (const ForeignCheckpoint& e) {
    say(e);
    return cli::kInputIsWrong;
  } catch (const NoUsableCheckpoint& e) {  // another start would train from the beginning
    say(e);
    return cli::kAnswerIsNo;
  } catch (const CommError& e) {
    say(e);
    return kExitLostPeer;
  } catch (const std::exception& e) {
    say(e);
    return cli::kEnvironmentFailed;
  }
}
